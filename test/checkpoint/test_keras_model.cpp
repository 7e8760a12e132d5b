#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/keras_archive.hpp"
#include "checkpoint/keras_model.hpp"
#include "checkpoint/weights_reader.hpp"
#include "golden.hpp"
#include "hdf5_listing.hpp"
#include "runtime/error.hpp"

using namespace rankine;
using namespace rankine::test;
using Catch::Contains;

namespace {

/// Every fixture with a model that Rankine computes.
std::vector<std::string> models() {
  std::vector<std::string> names = fixtures();
  std::erase(names, "mixed_bf16");
  return names;
}

void give_memory(Model& model, Arrays& arrays) {
  for (Variable& v : model.variables()) v.value = arrays.add(v.dtype, v.shape);
}

/// A fixture's trained model with its weights and optimizer state.
struct Trained {
  explicit Trained(const std::string& fixture) : loaded(load_model(golden(fixture, "final.keras"))) {
    give_memory(loaded.model, arrays);
    read_weights(*loaded.weights, loaded.model.variables());
    optimizer = optimizer_state_of(*loaded.weights, arrays);
    REQUIRE(read_optimizer_state(*loaded.weights, optimizer) == OptimizerRead::complete);
  }
  LoadedModel loaded;
  Arrays arrays;
  StateDict optimizer;
};

}  // namespace

TEST_CASE("Trained models are loaded with the weights that Keras gave them", "[checkpoint]") {
  for (const std::string& fixture : models()) {
    INFO(fixture);
    Trained trained(fixture);
    for (const Variable& v : trained.loaded.model.variables()) {
      INFO(v.path);
      const std::string number = std::to_string(v.ordinal);
      CHECK(values_of(v.value) ==
            expected_values(fixture, "final/" + std::string(3 - number.size(), '0') + number));
    }
  }
}

TEST_CASE("A config alone comes without weights", "[checkpoint]") {
  const auto loaded = load_model(golden("mlp_sgd", "model.json"));
  CHECK_FALSE(loaded.weights);
  CHECK(loaded.model.variables().size() == 6);
}

TEST_CASE("Models are written with Keras's structure and config", "[checkpoint]") {
  const TemporaryFolder folder;
  for (const std::string& fixture : models()) {
    INFO(fixture);
    const Trained trained(fixture);
    write_model(folder / "m.keras", trained.loaded.model, trained.optimizer);
    write_model(folder / "m.weights.h5", trained.loaded.model, trained.optimizer);

    const auto theirs = KerasArchive::open(golden(fixture, "final.keras"));
    const auto ours = KerasArchive::open(folder / "m.keras");
    CHECK(nlohmann::json::parse(ours.config()) == nlohmann::json::parse(theirs.config()));
    CHECK(listing_differences(hdf5::open_file(folder / "m.weights.h5"),
                              hdf5::open_file(golden(fixture, "final.weights.h5"))) ==
          std::vector<std::string>{});

    const LoadedModel again = load_model(folder / "m.keras");
    const WeightsFile stored = theirs.weights();
    for (const auto& [path, array] : stored.arrays()) {
      Arrays arrays;
      const Tensor a = arrays.add(dtype_from_name(array.dtype), array.shape);
      const Tensor b = arrays.add(dtype_from_name(array.dtype), array.shape);
      stored.read(path, a);
      again.weights->read(path, b);
      CHECK(values_of(a) == values_of(b));
    }
  }
}

TEST_CASE("Without optimizer state no optimizer is written", "[checkpoint]") {
  const TemporaryFolder folder;
  const Trained trained("mlp_sgd");
  write_model(folder / "m.weights.h5", trained.loaded.model, {});
  const auto file = WeightsFile::open(folder / "m.weights.h5");
  CHECK(file.arrays().size() == 6);
  CHECK(file.group_name("optimizer").empty());
}

TEST_CASE("Models go to .keras and .weights.h5 only", "[checkpoint]") {
  CHECK_NOTHROW(check_output_name("a/b.keras"));
  CHECK_NOTHROW(check_output_name("b.weights.h5"));
  CHECK_THROWS_AS(check_output_name("b.h5"), UsageError);
  const Trained trained("mlp_sgd");
  CHECK_THROWS_WITH(write_model("m.npz", trained.loaded.model, {}), Contains(".weights.h5"));
}

TEST_CASE("Models that can't be opened or aren't supported are refused", "[checkpoint]") {
  CHECK_THROWS_WITH(load_model("none.keras"), Contains("none.keras") && Contains("No such file"));
  CHECK_THROWS_WITH(load_model("none.json"), Contains("none.json") && Contains("No such file"));
  const TemporaryFolder folder;
  std::ofstream(folder / "m.json")
      << R"({"module": "keras", "class_name": "Sequential", "config": {"name": "s", "layers": [
    {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [null, 4], "dtype": "float32", "name": "x"}},
    {"module": "keras.layers", "class_name": "GRU", "config": {"name": "memory", "units": 3}}]}})";
  CHECK_THROWS_AS(load_model(folder / "m.json"), ConfigError);
}
