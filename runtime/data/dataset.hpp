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
  /// Bytes read so far, for tests and reports.
  virtual std::int64_t bytes_read() const = 0;
  /// For logs and errors: the file's path and what it holds.
  virtual std::string description() const = 0;
};

/// What the model wants of a dataset: the fields in the model's order, converted to these dtypes.
struct DataRequest {
  std::vector<Field> inputs;
  std::vector<Field> targets;
};

/// HDF5 with /inputs/<name> and /targets/<name>, first axis = samples; names as in the request ("x" and "y"
/// also serve when there is one). Missing names, wrong shapes, dtypes that don't convert without loss and
/// zero samples throw DataError.
std::unique_ptr<Dataset> open_hdf5_dataset(const std::string& path, const DataRequest& request);

/// Text as characters for a language model: input "x"-like int32 [length], target the next character of each.
/// The vocabulary is the sorted set of bytes in the file. Samples are consecutive windows; a last part
/// shorter than length + 1 is left out. Further integer inputs named in `positions` get 0 .. length-1.
struct TextOptions {
  std::vector<std::string> positions;  ///< inputs filled with "arange"
};
std::unique_ptr<Dataset> open_text_dataset(const std::string& path, const DataRequest& request,
                                           const TextOptions& options);
/// Raw little-endian token ids, uint16 or uint32 by `bytes_per_token` (2 or 4), cut as text is.
std::unique_ptr<Dataset> open_token_dataset(const std::string& path, int bytes_per_token,
                                            const DataRequest& request, const TextOptions& options);

/// The order in which an epoch sees the samples: a keyed permutation of [0, samples), equal on every mesh, in
/// O(1) memory (a Feistel network of Philox rounds over the next power of four, walked until it falls
/// inside).
class SampleOrder {
 public:
  SampleOrder(std::int64_t samples, std::uint64_t seed, bool shuffle);
  /// The sample at `position` of epoch `epoch`.
  std::int64_t sample(std::int64_t epoch, std::int64_t position) const;

 private:
  std::int64_t samples_;
  std::uint64_t seed_;
  bool shuffle_;
  int half_bits_;
};

}  // namespace rankine
