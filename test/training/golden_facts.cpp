#include "test/training/golden_facts.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/hdf5/hdf5_file.hpp"

namespace rankine::testing {

const std::vector<std::string>& trained_fixtures() {
  static const std::vector<std::string> names = {
      "mlp_sgd",    "mlp_adam_cosine", "einsum",      "tiny_gpt", "gqa",           "nested",
      "sharded",    "dropout",         "two_outputs", "text",     "probabilities", "everyday",
      "reversible", "masked",          "regularized", "weighted", "ignored",       "batch_norm"};
  return names;
}

nlohmann::json golden_json(const std::string& fixture, const std::string& file) {
  std::ifstream stream(golden(fixture + "/" + file));
  return nlohmann::json::parse(stream);
}

std::vector<double> golden_array(const std::string& fixture, const std::string& file,
                                 const std::string& path) {
  const hdf5::File opened = hdf5::open_file(golden(fixture + "/" + file));
  const hdf5::Dataset dataset = hdf5::open_dataset(opened.get(), path);
  const Shape shape = hdf5::info_of(dataset).shape;
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  hdf5::read_all(dataset, Tensor{values.data(), DType::float64, shape});
  return values;
}

std::vector<double> golden_array(const std::string& fixture, const std::string& file,
                                 const std::string& group, std::size_t index) {
  char number[32];
  std::snprintf(number, sizeof number, "/%03zu", index);
  return golden_array(fixture, file, group + number);
}

RunOptions options_for(const std::string& fixture) {
  RunOptions options;
  const nlohmann::json expected = golden_json(fixture, "expected.json");
  if (expected.contains("dropout")) options.seed = expected["dropout"]["seed"].get<std::uint64_t>();
  return options;
}

Difference difference(const std::vector<double>& ours, const std::vector<double>& keras) {
  REQUIRE(ours.size() == keras.size());
  Difference d;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double e = std::abs(ours[i] - keras[i]);
    d.largest = std::isnan(e) ? INFINITY : std::max(d.largest, e);
    d.rms += e * e;
  }
  d.rms = std::sqrt(d.rms / static_cast<double>(std::max<std::size_t>(ours.size(), 1)));
  return d;
}

double largest(const std::vector<double>& values) {
  double most = 0.0;
  for (const double v : values) most = std::max(most, std::abs(v));
  return most;
}

}  // namespace rankine::testing
