#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/compute/tensor.hpp"
#include "runtime/model/value.hpp"

namespace rankine {

/// One named array of a dataset: "tokens" of the inputs, "y" of the targets.
struct Field {
  std::string name;
  ValueSpec spec;
  std::string also = {};  ///< another name that serves as well; may be empty
};

/// Samples that can be read by their global index, in any order. Readers touch only the samples asked for.
/// Not collective: each rank reads for itself; one thread at a time. Errors: DataError naming file, array and
/// sample.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t samples() const = 0;
  virtual const std::vector<Field>& inputs() const = 0;
  virtual const std::vector<Field>& targets() const = 0;
  /// Reads samples indices[i] into row i of each tensor: one for every input, then one for every target.
  virtual void read(std::span<const std::int64_t> indices, std::span<const Tensor> into) = 0;
  /// Bytes of samples read so far, for tests and reports.
  virtual std::int64_t bytes_read() const = 0;
  /// For logs and errors: the file's path and what it holds.
  virtual std::string description() const = 0;
};

/// What the model wants of a dataset: the fields in the model's order, converted to these dtypes.
struct DataRequest {
  std::vector<Field> inputs;
  std::vector<Field> targets;
};

}  // namespace rankine
