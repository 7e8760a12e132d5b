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
  /// Sample weights, one field a target, or none at all.
  virtual const std::vector<Field>& weights() const {
    static const std::vector<Field> k_none;
    return k_none;
  }
  /// Reads samples indices[i] into row i of each tensor: one for every input, for every target, and for all
  /// weights.
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
  /// One a target, where sample weights are of use: their shape when each entry of the loss has its own.
  std::vector<Field> weights = {};
};

/// All fields in the order in which Dataset::read wants them.
inline std::vector<Field> fields_of(const Dataset& dataset) {
  std::vector<Field> fields = dataset.inputs();
  for (const auto* more : {&dataset.targets(), &dataset.weights()})
    fields.insert(fields.end(), more->begin(), more->end());
  return fields;
}

}  // namespace rankine
