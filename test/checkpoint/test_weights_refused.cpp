#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "checkpoint/weights_reader.hpp"
#include "checkpoint/weights_writer.hpp"
#include "golden.hpp"
#include "runtime/error.hpp"
#include "runtime/hdf5/hdf5_file.hpp"

using namespace rankine;
using namespace rankine::test;
using Catch::Contains;

namespace {

/// A weights file made by hand, one object after another.
class HandMade {
 public:
  HandMade() : file_(hdf5::create_image("hand.h5")), parents_(H5Pcreate(H5P_LINK_CREATE)) {
    H5Pset_create_intermediate_group(parents_.get(), 1);
  }
  hid_t id() const { return file_.get(); }
  hid_t parents() const { return parents_.get(); }

  template <class T>
  hdf5::Dataset add(const std::string& path, hid_t type, hid_t memory, const Shape& shape,
                    const std::vector<T>& values) {
    const std::vector<hsize_t> sizes(shape.sizes().begin(), shape.sizes().end());
    const hdf5::Dataspace space(H5Screate_simple(shape.rank(), sizes.data(), nullptr));
    hdf5::Dataset dataset(
        H5Dcreate2(id(), path.c_str(), type, space.get(), parents_.get(), H5P_DEFAULT, H5P_DEFAULT));
    REQUIRE(H5Dwrite(dataset.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
    return dataset;
  }
  void floats(const std::string& path, const Shape& shape, float value = 1.5F) {
    add(path, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, shape,
        std::vector<float>(static_cast<std::size_t>(shape.elements()), value));
  }
  WeightsFile open() const { return WeightsFile::from_image(hdf5::image_of(file_), "hand.h5"); }

 private:
  hdf5::File file_;
  hdf5::PropertyList parents_;
};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const CheckpointError& error) {
    CHECK(error.exit_code() == ExitCode::checkpoint);
    return error.what();
  }
  FAIL("nothing was thrown");
  return "";
}

Variable variable(Arrays& arrays, const std::string& structural, const Shape& shape) {
  Variable v;
  v.path = "hidden/" + structural.substr(structural.rfind('/') + 1);
  v.structural_path = structural;
  v.shape = shape;
  v.value = arrays.add(DType::float32, shape);
  return v;
}

}  // namespace

TEST_CASE("One error lists all that differs, and nothing is loaded", "[checkpoint]") {
  HandMade file;
  file.floats("layers/dense/vars/0", {4, 3});
  file.floats("layers/dense/vars/1", {3});
  file.floats("layers/dense_7/vars/0", {2});
  file.add<double>("layers/dense_1/vars/0", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {2}, {1, 2});
  Arrays arrays;
  std::vector<Variable> wanted{
      variable(arrays, "layers/dense/vars/0", {4, 5}), variable(arrays, "layers/dense/vars/1", {3}),
      variable(arrays, "layers/dense_1/vars/0", {2}), variable(arrays, "layers/dense_2/vars/0", {6})};
  const std::string text = error_of([&] { read_weights(file.open(), wanted); });
  CHECK_THAT(
      text,
      Contains("hand.h5") && Contains("4 differences") &&
          Contains(
              "layers/dense/vars/0 (hidden/0): other shape: the file has float32 (4, 3), the model wants "
              "float32 (4, 5)") &&
          Contains("layers/dense_1/vars/0 (hidden/0): other dtype: the file has float64 (2,)") &&
          Contains("missing in the file: layers/dense_2/vars/0 (hidden/0) float32 (6,)") &&
          Contains("unknown to the model: layers/dense_7/vars/0 float32 (2,)"));
  CHECK(wanted[1].value.as<float>()[0] == 0.0F);
}

TEST_CASE("Weights of another model are refused", "[checkpoint]") {
  GoldenState state("mlp_sgd");
  CHECK_THROWS_WITH(read_weights(WeightsFile::open(golden("nested", "final.weights.h5")), state.variables),
                    Contains("doesn't hold the weights of this model") &&
                        Contains("unknown to the model: layers/functional"));
}

TEST_CASE("Many differences are counted, not all printed", "[checkpoint]") {
  HandMade file;
  for (int i = 0; i < 60; ++i) file.floats("layers/dense/vars/" + std::to_string(i), {1});
  std::vector<Variable> none;
  CHECK_THROWS_WITH(read_weights(file.open(), none), Contains("60 differences") && Contains("and 20 more"));
}

TEST_CASE("Files of TensorFlow 2.13's time are read", "[checkpoint]") {
  HandMade file;
  file.floats("_layer_checkpoint_dependencies/dense/vars/0", {4, 3}, 2.5F);
  file.floats("_layer_checkpoint_dependencies/functional/_layer_checkpoint_dependencies/dense/vars/0", {2},
              3.5F);
  Arrays arrays;
  std::vector<Variable> wanted{variable(arrays, "layers/dense/vars/0", {4, 3}),
                               variable(arrays, "layers/functional/layers/dense/vars/0", {2})};
  read_weights(file.open(), wanted);
  CHECK(wanted[0].value.as<float>()[11] == 2.5F);
  CHECK(wanted[1].value.as<float>()[1] == 3.5F);
  file.floats("layers/dense/vars/0", {4, 3});
  CHECK_THROWS_WITH(file.open(), Contains("stored twice"));
}

TEST_CASE("bfloat16 and float16 are widened when asked", "[checkpoint]") {
  HandMade file;
  const hdf5::Datatype opaque(H5Tcreate(H5T_OPAQUE, 2));
  const std::vector<std::uint16_t> bits{0x3f80, 0xc049, 0x7f80};  // 1, -3.140625, infinity
  const auto dataset = file.add("layers/dense/vars/0", opaque.get(), opaque.get(), {3}, bits);
  const hdf5::Datatype text(H5Tcopy(H5T_C_S1));
  H5Tset_size(text.get(), H5T_VARIABLE);
  const hdf5::Dataspace scalar(H5Screate(H5S_SCALAR));
  const hdf5::Attribute dtype(
      H5Acreate2(dataset.get(), "dtype", text.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
  const char* name = "bfloat16";
  H5Awrite(dtype.get(), text.get(), &name);
  const hdf5::Datatype half(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_fields(half.get(), 15, 10, 5, 0, 10);
  H5Tset_size(half.get(), 2);
  H5Tset_ebias(half.get(), 15);
  file.add<float>("layers/dense/vars/1", half.get(), H5T_NATIVE_FLOAT, {2}, {0.5F, -2048});

  Arrays arrays;
  std::vector<Variable> wanted{variable(arrays, "layers/dense/vars/0", {3}),
                               variable(arrays, "layers/dense/vars/1", {2})};
  const auto stored = file.open();
  CHECK_THROWS_WITH(read_weights(stored, wanted),
                    Contains("the file has bfloat16 (3,)") && Contains("the file has float16 (2,)"));
  read_weights(stored, wanted, FloatPolicy::convert);
  CHECK(values_of(wanted[0].value) ==
        std::vector<double>{1, -3.140625, std::numeric_limits<double>::infinity()});
  CHECK(values_of(wanted[1].value) == std::vector<double>{0.5, -2048});
}

TEST_CASE("Optimizer state is strict about number, shape and owner", "[checkpoint]") {
  const auto file = WeightsFile::open(golden("mlp_adam_cosine", "final.keras"));
  GoldenState state("mlp_adam_cosine");
  StateDict fewer(state.optimizer.begin(), state.optimizer.end() - 1);
  CHECK_THROWS_WITH(
      read_optimizer_state(file, fewer),
      Contains("holds 13 tensors of optimizer state that don't fit the 12 of this run's optimizer") &&
          Contains("unknown to the model: optimizer/vars/12"));
  StateDict other = state.optimizer;
  other[3].local = state.arrays.add(DType::float32, {5});
  CHECK_THROWS_WITH(read_optimizer_state(file, other),
                    Contains("optimizer/vars/3") && Contains("other shape") && Contains("(5,)"));
  StateDict renamed = state.optimizer;
  renamed[0].path = "lion/iteration";
  CHECK_THROWS_WITH(read_optimizer_state(file, renamed),
                    Contains("the optimizer adam, but this run's optimizer is lion"));
  StateDict none;
  CHECK(read_optimizer_state(file, none) == OptimizerRead::absent);
}

TEST_CASE("Counters of other widths are read if they fit", "[checkpoint]") {
  for (const std::int64_t count : {std::int64_t{123}, std::int64_t{1} << 40}) {
    HandMade file;
    file.add<std::int64_t>("optimizer/vars/0", H5T_STD_I64LE, H5T_NATIVE_INT64, {1}, {count});
    Arrays arrays;
    StateDict state{
        {"optimizer/vars/0", "sgd/iteration", StateRole::counter, {1}, arrays.add(DType::int32, {1})}};
    const auto stored = file.open();
    if (count == 123) {
      CHECK(read_optimizer_state(stored, state) == OptimizerRead::complete);
      CHECK(state[0].local.as<std::int32_t>()[0] == 123);
    } else {
      CHECK_THROWS_WITH(read_optimizer_state(stored, state), Contains("doesn't fit int32"));
    }
  }
}

TEST_CASE("A file whose counter has moved but whose slots are gone isn't taken for untrained",
          "[checkpoint]") {
  GoldenState state("mlp_sgd");
  HandMade file;
  const hdf5::Dataspace scalar(H5Screate(H5S_SCALAR));
  const hdf5::Dataset counter(H5Dcreate2(file.id(), "optimizer/vars/0", H5T_STD_I32LE, scalar.get(),
                                         file.parents(), H5P_DEFAULT, H5P_DEFAULT));
  const std::int32_t steps = 4;
  H5Dwrite(counter.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, &steps);
  CHECK_THROWS_WITH(read_optimizer_state(file.open(), state.optimizer),
                    Contains("holds 1 tensors") && Contains("the 8 of"));
}

TEST_CASE("Objects that aren't plain arrays are refused by name", "[checkpoint]") {
  HandMade file;
  file.floats("layers/dense/vars/0", {4});
  const auto refuse = [&](const char* part) {
    CHECK_THROWS_WITH(file.open(), Contains("hand.h5") && Contains(part));
  };

  SECTION("soft link") {
    H5Lcreate_soft("/layers/dense", file.id(), "layers/dense_1", H5P_DEFAULT, H5P_DEFAULT);
    refuse("dense_1 is a soft link");
  }
  SECTION("external link") {
    H5Lcreate_external("other.h5", "/", file.id(), "layers/dense_1", H5P_DEFAULT, H5P_DEFAULT);
    refuse("dense_1 is an external link");
  }
  SECTION("hard link to a group above") {
    H5Lcreate_hard(file.id(), "layers", file.id(), "layers/dense/again", H5P_DEFAULT, H5P_DEFAULT);
    refuse("second link");
  }
  SECTION("virtual dataset") {
    const hdf5::PropertyList creation(H5Pcreate(H5P_DATASET_CREATE));
    const hsize_t size = 4;
    const hdf5::Dataspace space(H5Screate_simple(1, &size, nullptr));
    H5Pset_virtual(creation.get(), space.get(), "other.h5", "x", space.get());
    hdf5::Dataset(H5Dcreate2(file.id(), "layers/dense/vars/1", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT,
                             creation.get(), H5P_DEFAULT));
    refuse("layers/dense/vars/1 is a virtual dataset");
  }
  SECTION("never written") {
    const hsize_t size = 4;
    const hdf5::Dataspace space(H5Screate_simple(1, &size, nullptr));
    hdf5::Dataset(H5Dcreate2(file.id(), "layers/dense/vars/1", H5T_IEEE_F32LE, space.get(), H5P_DEFAULT,
                             H5P_DEFAULT, H5P_DEFAULT));
    refuse("never written");
  }
  SECTION("deep nesting") {
    std::string path = "layers";
    for (int i = 0; i < 70; ++i) path += "/g";
    file.floats(path, {1});
    refuse("nested too deeply");
  }
  SECTION("whole model of the old kind") {
    file.floats("model_weights/dense/kernel", {1});
    refuse("old .h5 form");
  }
}

TEST_CASE("Files of the wrong kind are refused by name", "[checkpoint]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(WeightsFile::open(folder / "model.weights.npz"), Contains(".npz aren't read"));
  CHECK_THROWS_WITH(WeightsFile::open(folder / "none.weights.h5"), Contains("No such file"));
  CHECK_THROWS_WITH(WeightsFile::open(folder / "none.weights.json"), Contains("No such file"));
  CHECK_THROWS_WITH(WeightsFile::open(golden("mlp_sgd", "model.json")), Contains("has no weight_map"));
  write_bytes(folder / "text.weights.h5", std::as_bytes(std::span("no HDF5 here")));
  CHECK_THROWS_WITH(WeightsFile::open(folder / "text.weights.h5"), Contains("isn't an HDF5 file"));
}

TEST_CASE("A weights file cut anywhere is refused", "[checkpoint]") {
  const TemporaryFolder folder;
  const auto bytes = read_bytes(golden("mlp_sgd", "final.weights.h5"));
  for (std::size_t i = 1; i <= 50; ++i) {
    const std::size_t length = i == 50 ? bytes.size() - 1 : bytes.size() * i / 50;
    write_bytes(folder / "cut.weights.h5", std::span(bytes).first(length));
    CHECK_THROWS_AS(WeightsFile::open(folder / "cut.weights.h5"), CheckpointError);
    CHECK_THROWS_AS(WeightsFile::from_image(std::span(bytes).first(length), "cut"), CheckpointError);
  }
}

TEST_CASE("An index of shards must tell the truth", "[checkpoint]") {
  const TemporaryFolder folder;
  const std::string source = golden("sharded", "final_sharded/");
  auto index = nlohmann::json::parse(std::ifstream(source + "final.weights.json"));
  const auto copy = [&](const std::string& shard) {
    write_bytes(folder / shard, read_bytes(source + shard));
  };
  for (const char* shard : {"final_00000.weights.h5", "final_00001.weights.h5", "final_00002.weights.h5"})
    copy(shard);
  const auto open = [&] {
    std::ofstream(folder / "final.weights.json") << index;
    return WeightsFile::open(folder / "final.weights.json");
  };
  CHECK(open().arrays().size() == 10);

  SECTION("a shard is missing") {
    std::remove((folder / "final_00001.weights.h5").c_str());
    CHECK_THROWS_WITH(open(), Contains("final_00001.weights.h5") && Contains("No such file"));
  }
  SECTION("a shard isn't listed") {
    index["weight_map"]["/layers/dense_1/vars"] = "final_00001.weights.h5";
    CHECK_THROWS_WITH(open(), Contains("final_00002.weights.h5 holds arrays of layers/dense_1/vars") &&
                                  Contains("different saves"));
  }
  SECTION("a group isn't where it should be") {
    index["weight_map"]["/layers/dense/vars"] =
        nlohmann::json{"final_00000.weights.h5", "final_00002.weights.h5"};
    CHECK_THROWS_WITH(
        open(), Contains("final_00002.weights.h5 should hold arrays of layers/dense/vars but has none"));
  }
  SECTION("bytes are missing") {
    index["metadata"]["total_size"] = 169816.0;
    CHECK_THROWS_WITH(open(), Contains("169816 bytes") && Contains("169812"));
  }
  SECTION("a name leads out of the folder") {
    index["weight_map"]["/layers/dense/vars"] = "../final_00000.weights.h5";
    CHECK_THROWS_WITH(open(), Contains("isn't a file beside the index"));
  }
  SECTION("a name isn't one") {
    index["weight_map"]["/layers/dense/vars"] = 3;
    CHECK_THROWS_WITH(open(), Contains("isn't a list of file names"));
  }
  SECTION("the index is cut off") {
    std::ofstream(folder / "cut.weights.json") << index.dump().substr(0, 100);
    CHECK_THROWS_WITH(WeightsFile::open(folder / "cut.weights.json"), Contains("cut off"));
  }
  SECTION("keys without the slash and without vars are read") {
    index["weight_map"].erase("/layers/dense/vars");
    index["weight_map"]["layers/dense"] = "final_00000.weights.h5";
    CHECK(open().arrays().size() == 10);
  }
}
