#include "golden.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/hdf5/hdf5_file.hpp"

namespace rankine::test {
namespace {

std::string place(const nlohmann::json& row) {
  return row["h5"].get<std::string>().substr(1);
}

Shape shape_of(const nlohmann::json& row) {
  return Shape(row["shape"].get<std::vector<std::int64_t>>());
}

}  // namespace

const std::vector<std::string>& fixtures() {
  static const std::vector<std::string> names{
      "dropout", "everyday",      "reversible",      "masked",   "einsum",   "embedding_bag",
      "gqa",     "mixed_bf16",    "mlp_adam_cosine", "mlp_lion", "mlp_sgd",  "nested",
      "odd",     "probabilities", "sharded",         "text",     "tiny_gpt", "two_outputs"};
  return names;
}

std::string golden(const std::string& fixture, const std::string& file) {
  return std::string(GOLDEN_FOLDER) + "/" + fixture + "/" + file;
}

Tensor Arrays::add(DType dtype, const Shape& shape) {
  const auto bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  memory_.push_back(std::make_unique<std::byte[]>(std::max<std::size_t>(bytes, 1)));
  return {memory_.back().get(), dtype, shape};
}

GoldenState::GoldenState(const std::string& fixture, DType dtype) {
  const auto expected = nlohmann::json::parse(std::ifstream(golden(fixture, "expected.json")));
  for (const auto& row : expected["variables"]) {
    Variable v;
    v.path = row["path"].get<std::string>();
    v.structural_path = place(row);
    v.ordinal = row["index"].get<int>();
    v.shape = shape_of(row);
    v.dtype = dtype;
    v.value = arrays.add(dtype, v.shape);
    variables.push_back(v);
  }
  for (const auto& row : expected["optimizer_variables"]) {
    const bool counter = row["dtype"] == "int32";
    const Shape shape = shape_of(row);
    optimizer.push_back({place(row), row["path"].get<std::string>(),
                         counter ? StateRole::counter : StateRole::slot, shape,
                         arrays.add(counter ? DType::int32 : dtype, shape)});
  }
}

std::vector<double> expected_values(const std::string& fixture, const std::string& array) {
  const auto file = hdf5::open_file(golden(fixture, "expected.h5"));
  const auto dataset = hdf5::open_dataset(file.get(), array);
  const Shape shape = hdf5::info_of(dataset).shape;
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  hdf5::read_all(dataset, {values.data(), DType::float64, shape});
  return values;
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  const auto copy = [&](auto span) { values.assign(span.begin(), span.end()); };
  if (tensor.dtype == DType::float32) copy(tensor.span<float>());
  if (tensor.dtype == DType::float64) copy(tensor.span<double>());
  if (tensor.dtype == DType::int32) copy(tensor.span<std::int32_t>());
  return values;
}

StateDict optimizer_state_of(const WeightsFile& file, Arrays& arrays) {
  StateDict state;
  for (const auto& [path, array] : file.arrays()) {
    if (!path.starts_with("optimizer/")) continue;
    const DType dtype = dtype_from_name(array.dtype);
    state.push_back({path, file.group_name("optimizer") + "/" + path, StateRole::slot, array.shape,
                     arrays.add(dtype, array.shape)});
  }
  return state;
}

std::vector<SaveGroup> save_groups_of(const WeightsFile& file, std::string* optimizer_name) {
  std::vector<SaveGroup> groups;
  for (const std::string& path : file.groups())
    if (path != "optimizer") groups.push_back({path, file.group_name(path)});
  if (optimizer_name != nullptr) *optimizer_name = file.group_name("optimizer");
  return groups;
}

TemporaryFolder::TemporaryFolder() {
  static std::atomic<int> next{0};
  path_ = (std::filesystem::temp_directory_path() /
           ("rankine-checkpoint-" + std::to_string(::getpid()) + "-" + std::to_string(next++)))
              .string();
  std::filesystem::create_directories(path_);
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
std::string TemporaryFolder::operator/(const std::string& name) const {
  return path_ + "/" + name;
}

std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace rankine::test
