#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/weights_file.hpp"
#include "runtime/model/model.hpp"
#include "runtime/state.hpp"

namespace rankine::test {

/// The golden fixtures whose weights Rankine can hold.
const std::vector<std::string>& fixtures();
std::string golden(const std::string& fixture, const std::string& file);

/// Tensors with memory of their own.
class Arrays {
 public:
  Tensor add(DType dtype, const Shape& shape);

 private:
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// A fixture's variables and optimizer state without a model: names, shapes and places from its
/// expected.json.
struct GoldenState {
  explicit GoldenState(const std::string& fixture, DType dtype = DType::float32);
  std::vector<Variable> variables;
  StateDict optimizer;
  Arrays arrays;
};

/// The values of an array of expected.h5 ("final/003").
std::vector<double> expected_values(const std::string& fixture, const std::string& array);
std::vector<double> values_of(const Tensor& tensor);

/// The optimizer's arrays of a file with memory for them, as an optimizer would show them.
StateDict optimizer_state_of(const WeightsFile& file, Arrays& arrays);

/// Every saved object of a file, as a model would list them, and the name of its optimizer.
std::vector<SaveGroup> save_groups_of(const WeightsFile& file, std::string* optimizer_name = nullptr);

/// A folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const;

 private:
  std::string path_;
};

std::vector<std::byte> read_bytes(const std::string& path);
void write_bytes(const std::string& path, std::span<const std::byte> bytes);

}  // namespace rankine::test
