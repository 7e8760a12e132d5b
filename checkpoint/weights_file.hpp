#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/compute/tensor.hpp"

namespace rankine {

/// Orders structural paths as people count: "optimizer/vars/2" before "optimizer/vars/10".
struct StructuralLess {
  bool operator()(const std::string& a, const std::string& b) const;
};

/// One array of a weights file.
struct StoredArray {
  Shape shape;
  std::string dtype;      ///< NumPy's name, or "bfloat16"
  std::size_t bytes = 0;  ///< of its values
};

/// The arrays of a Keras weights file, by structural path, before anything is read. Not collective;
/// read-only; nothing is ever created. Throws CheckpointError for what is missing, damaged or unsafe.
class WeightsFile {
 public:
  /// A `.weights.h5`, a sharded `.weights.json` with its shards, or the weights of a `.keras`.
  static WeightsFile open(const std::string& path);
  /// A `.weights.h5` in memory; `label` is its name in messages.
  static WeightsFile from_image(std::span<const std::byte> image, const std::string& label);
  WeightsFile(WeightsFile&&) noexcept;
  WeightsFile& operator=(WeightsFile&&) noexcept;
  ~WeightsFile();

  const std::string& name() const;
  using Arrays = std::map<std::string, StoredArray, StructuralLess>;
  /// By structural path ("layers/dense/vars/0"); paths of files of TensorFlow 2.13's time are given in
  /// today's form.
  const Arrays& arrays() const;
  /// The saved objects: "layers/dense", "optimizer", "" for the model.
  std::vector<std::string> groups() const;
  /// An object's own name, for people ("hidden_1", "adam"); "" when there is none. Read only when asked for:
  /// HDF5 1.10 can crash on a damaged text of variable length, so reading weights keeps away from them.
  std::string group_name(const std::string& group) const;
  /// Reads an array into a tensor of its shape. float16, bfloat16, float32 and float64 become the tensor's
  /// dtype by rounding to nearest; integers that don't fit int32 throw.
  void read(const std::string& structural_path, Tensor into) const;

 private:
  struct State;
  explicit WeightsFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rankine
