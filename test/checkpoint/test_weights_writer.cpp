#include <catch2/catch.hpp>
#include <cstring>

#include "checkpoint/weights_reader.hpp"
#include "checkpoint/weights_writer.hpp"
#include "golden.hpp"
#include "hdf5_listing.hpp"
#include "runtime/error.hpp"

using namespace rankine;
using namespace rankine::test;

TEST_CASE("Our weights files have the structure of Keras's, object by object", "[checkpoint]") {
  for (const std::string& fixture : fixtures()) {
    INFO(fixture);
    const std::string path = golden(fixture, "final.weights.h5");
    const auto keras = WeightsFile::open(path);
    GoldenState state(fixture);
    read_weights(keras, state.variables);
    read_optimizer_state(keras, state.optimizer);
    std::string optimizer_name;
    const auto groups = save_groups_of(keras, &optimizer_name);
    const auto image = weights_image({state.variables, groups, state.optimizer, optimizer_name});
    CHECK(listing_differences(hdf5::open_image(image, "ours"), hdf5::open_file(path)) ==
          std::vector<std::string>{});
    // Superblock version, versions of its parts, sizes of offsets and lengths.
    const auto theirs = read_bytes(path);
    CHECK(std::memcmp(image.data(), theirs.data(), 16) == 0);
  }
}

TEST_CASE("What is written is read back bit for bit", "[checkpoint]") {
  GoldenState state("gqa");
  const auto keras = WeightsFile::open(golden("gqa", "final.weights.h5"));
  read_weights(keras, state.variables);
  read_optimizer_state(keras, state.optimizer);
  // Bits that arithmetic would change: a NaN with a payload, -0 and a denormal.
  const std::uint32_t odd[]{0x7fc12345U, 0x80000000U, 0x00000001U};
  std::memcpy(state.variables[0].value.data, odd, sizeof odd);
  state.optimizer[0].local.as<std::int32_t>()[0] = 2147483647;
  const auto groups = save_groups_of(keras);
  const auto file =
      WeightsFile::from_image(weights_image({state.variables, groups, state.optimizer, "adam"}), "image");

  GoldenState back("gqa");
  read_weights(file, back.variables);
  REQUIRE(read_optimizer_state(file, back.optimizer) == OptimizerRead::complete);
  for (std::size_t i = 0; i < state.variables.size(); ++i)
    CHECK(std::memcmp(state.variables[i].value.data, back.variables[i].value.data,
                      state.variables[i].value.bytes()) == 0);
  for (std::size_t i = 0; i < state.optimizer.size(); ++i)
    CHECK(std::memcmp(state.optimizer[i].local.data, back.optimizer[i].local.data,
                      state.optimizer[i].local.bytes()) == 0);
}

TEST_CASE("float64 weights are written as float64", "[checkpoint]") {
  GoldenState state("mlp_sgd", DType::float64);
  read_weights(WeightsFile::open(golden("mlp_sgd", "final.weights.h5")), state.variables,
               FloatPolicy::convert);
  state.variables[0].value.as<double>()[0] = 0.1;
  const auto file = WeightsFile::from_image(weights_image({state.variables, {}, {}, ""}), "image");
  GoldenState wide("mlp_sgd", DType::float64);
  read_weights(file, wide.variables);
  CHECK(wide.variables[0].value.as<double>()[0] == 0.1);
  GoldenState narrow("mlp_sgd");
  CHECK_THROWS_AS(read_weights(file, narrow.variables), CheckpointError);
  read_weights(file, narrow.variables, FloatPolicy::convert);
  CHECK(narrow.variables[0].value.as<float>()[0] == 0.1F);
  CHECK(read_optimizer_state(file, narrow.optimizer) == OptimizerRead::absent);
}

TEST_CASE("Equal weights make equal files", "[checkpoint]") {
  GoldenState state("mlp_sgd");
  CHECK(weights_image({state.variables, {}, {}, ""}) == weights_image({state.variables, {}, {}, ""}));
}

TEST_CASE("A variable without memory can't be written", "[checkpoint]") {
  GoldenState state("mlp_sgd");
  state.variables[1].value = {};
  CHECK_THROWS_WITH(weights_image({state.variables, {}, {}, ""}), Catch::Contains("layers/dense/vars/1"));
}
