#include <catch2/catch.hpp>

#include "checkpoint/keras_archive.hpp"
#include "checkpoint/weights_file.hpp"
#include "checkpoint/weights_reader.hpp"
#include "golden.hpp"
#include "runtime/error.hpp"

using namespace rankine;
using namespace rankine::test;

namespace {

void check_final_weights(const std::string& fixture, const WeightsFile& file) {
  GoldenState state(fixture);
  read_weights(file, state.variables);
  for (const Variable& v : state.variables) {
    INFO(fixture << ": " << v.path);
    const std::string number = std::to_string(v.ordinal);
    CHECK(values_of(v.value) ==
          expected_values(fixture, "final/" + std::string(3 - number.size(), '0') + number));
  }
}

void check_final_optimizer(const std::string& fixture, const WeightsFile& file) {
  GoldenState state(fixture);
  REQUIRE(read_optimizer_state(file, state.optimizer) == OptimizerRead::complete);
  for (std::size_t i = 0; i < state.optimizer.size(); ++i) {
    INFO(fixture << ": " << state.optimizer[i].path);
    const std::string number = std::to_string(i);
    CHECK(values_of(state.optimizer[i].local) ==
          expected_values(fixture, "optimizer/" + std::string(3 - number.size(), '0') + number));
  }
}

}  // namespace

TEST_CASE("Trained weights and optimizer state are read bit for bit from .weights.h5 and .keras",
          "[checkpoint]") {
  for (const std::string& fixture : fixtures()) {
    for (const char* name : {"final.weights.h5", "final.keras"}) {
      const auto file = WeightsFile::open(golden(fixture, name));
      check_final_weights(fixture, file);
      check_final_optimizer(fixture, file);
    }
  }
}

TEST_CASE("First weights are equal in .weights.h5 and .keras", "[checkpoint]") {
  for (const std::string& fixture : fixtures()) {
    GoldenState first(fixture);
    GoldenState second(fixture);
    read_weights(WeightsFile::open(golden(fixture, "initial.weights.h5")), first.variables);
    read_weights(KerasArchive::open(golden(fixture, "model.keras")).weights(), second.variables);
    for (std::size_t i = 0; i < first.variables.size(); ++i)
      CHECK(values_of(first.variables[i].value) == values_of(second.variables[i].value));
  }
}

TEST_CASE("A model saved before its first step has no optimizer state", "[checkpoint]") {
  // Two optimizers were built by hand before the save, so all their slots are there, as zeros.
  for (const std::string& fixture : fixtures()) {
    GoldenState state(fixture);
    const bool built = fixture == "mlp_adam_cosine" || fixture == "einsum";
    // Plain SGD has nothing but the counter and the rate.
    const bool slotless = fixture == "sharded";
    INFO(fixture);
    CHECK(read_optimizer_state(WeightsFile::open(golden(fixture, "model.keras")), state.optimizer) ==
          (built || slotless ? OptimizerRead::complete : OptimizerRead::untrained));
  }
}

TEST_CASE("Sharded weights are read through their index", "[checkpoint]") {
  const auto file = WeightsFile::open(golden("sharded", "final_sharded/final.weights.json"));
  check_final_weights("sharded", file);
  check_final_optimizer("sharded", file);
  GoldenState sharded("sharded");
  GoldenState whole("sharded");
  read_weights(WeightsFile::open(golden("sharded", "initial_sharded/initial.weights.json")),
               sharded.variables);
  read_weights(WeightsFile::open(golden("sharded", "initial.weights.h5")), whole.variables);
  for (std::size_t i = 0; i < whole.variables.size(); ++i)
    CHECK(values_of(sharded.variables[i].value) == values_of(whole.variables[i].value));
}

TEST_CASE("Names of the groups are kept for people", "[checkpoint]") {
  const auto file = WeightsFile::open(golden("nested", "final.weights.h5"));
  CHECK(file.group_name("") == "nested");
  CHECK(file.group_name("optimizer") == "sgd");
  CHECK(file.group_name("layers/functional/layers/dense_1") == "encoder_side");
  CHECK(file.group_name("layers/none").empty());
  // Numbers in paths are ordered as numbers.
  std::vector<std::string> slots;
  for (const auto& entry : file.arrays())
    if (entry.first.starts_with("optimizer/")) slots.push_back(entry.first);
  REQUIRE(slots.size() == 17);
  CHECK(slots[2] == "optimizer/vars/2");
  CHECK(slots[10] == "optimizer/vars/10");
}

TEST_CASE("float32 files fill float64 models only when asked", "[checkpoint]") {
  GoldenState narrow("mlp_sgd");
  GoldenState wide("mlp_sgd", DType::float64);
  const auto file = WeightsFile::open(golden("mlp_sgd", "final.keras"));
  CHECK_THROWS_WITH(read_weights(file, wide.variables),
                    Catch::Contains("other dtype: the file has float32 (32, 64), the model "
                                    "wants float64 (32, 64)"));
  read_weights(file, wide.variables, FloatPolicy::convert);
  read_weights(file, narrow.variables);
  for (std::size_t i = 0; i < wide.variables.size(); ++i)
    CHECK(values_of(wide.variables[i].value) == values_of(narrow.variables[i].value));
  CHECK_THROWS_AS(read_optimizer_state(file, wide.optimizer), CheckpointError);
  CHECK(read_optimizer_state(file, wide.optimizer, FloatPolicy::convert) == OptimizerRead::complete);
  CHECK(wide.optimizer[0].local.as<std::int32_t>()[0] == 8);
}
