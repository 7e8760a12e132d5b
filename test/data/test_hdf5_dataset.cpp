#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/data/hdf5_dataset.hpp"
#include "runtime/error.hpp"
#include "test/data/scratch.hpp"

using namespace rankine;
using Catch::Contains;
using test::Hdf5Writer;
using test::ScratchFolder;

namespace {

Field field(const std::string& name, Shape shape, DType dtype = DType::float32) {
  return {name, {std::move(shape), dtype}};
}

template <class T>
std::vector<T> counted(std::size_t n) {
  std::vector<T> values(n);
  std::iota(values.begin(), values.end(), T{0});
  return values;
}

/// Reads samples of a dataset with one input and one target of float or int32.
template <class X, class Y>
struct Rows {
  std::vector<X> x;
  std::vector<Y> y;
  Rows(Dataset& data, const std::vector<std::int64_t>& indices) {
    const auto rows = std::ssize(indices);
    const Shape x_shape = data.inputs()[0].spec.shape.with_leading(rows);
    const Shape y_shape = data.targets()[0].spec.shape.with_leading(rows);
    x.resize(static_cast<std::size_t>(x_shape.elements()));
    y.resize(static_cast<std::size_t>(y_shape.elements()));
    data.read(indices,
              std::vector<Tensor>{{x.data(), dtype_of<X>, x_shape}, {y.data(), dtype_of<Y>, y_shape}});
  }
};

const DataRequest k_request{{field("x", {3})}, {field("y", {}, DType::int32)}};

/// A file of `samples` samples that `k_request` accepts, values counted up.
std::string simple_file(const ScratchFolder& folder, hsize_t samples, hsize_t chunk = 0) {
  const std::string path = folder / "data.h5";
  Hdf5Writer(path)
      .array("/inputs/x", {samples, 3}, counted<float>(3 * samples), chunk)
      .array("/targets/y", {samples}, counted<std::int32_t>(samples), chunk);
  return path;
}

}  // namespace

TEST_CASE("samples are read by index in any order", "[data][hdf5]") {
  const ScratchFolder folder;
  for (const hsize_t chunk : {0, 4}) {
    CAPTURE(chunk);
    const auto data = open_hdf5_dataset(simple_file(folder, 10, chunk), k_request);
    REQUIRE(data->samples() == 10);
    for (const std::vector<std::int64_t>& indices : std::vector<std::vector<std::int64_t>>{
             {0, 1, 2, 3}, {9, 0, 5}, {3, 2, 1, 0, 4}, {7}, {2, 2, 3, 2}, {8, 9, 0, 1}}) {
      const Rows<float, std::int32_t> rows(*data, indices);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        CHECK(rows.y[i] == indices[i]);
        for (std::size_t e = 0; e < 3; ++e) {
          CHECK(rows.x[3 * i + e] == static_cast<float>(3 * indices[i]) + static_cast<float>(e));
        }
      }
    }
    CHECK(data->bytes_read() == (4 + 3 + 5 + 1 + 4 + 4) * (3 * 4 + 4));
  }
}

TEST_CASE("a long run of large samples is read in parts", "[data][hdf5]") {
  const ScratchFolder folder;
  const std::string path = folder / "data.h5";
  constexpr hsize_t k_width = 1 << 19;  // two samples are a run
  Hdf5Writer(path)
      .array("/inputs/x", {5, k_width}, counted<double>(5 * k_width))
      .array("/targets/y", {5}, counted<std::int32_t>(5));
  const auto data = open_hdf5_dataset(path, {{field("x", {std::int64_t{k_width}})}, k_request.targets});
  const Rows<float, std::int32_t> rows(*data, {4, 3, 2, 1, 0});
  CHECK(rows.x[0] == 4.0F * k_width);
  CHECK(rows.x[4 * k_width + 17] == 17.0F);
  CHECK(rows.x[1 * k_width + 17] == 3.0F * k_width + 17.0F);
}

TEST_CASE("x and y serve a single input and target, and unused arrays are named", "[data][hdf5]") {
  const ScratchFolder folder;
  const std::string path = folder / "data.h5";
  Hdf5Writer(path)
      .array("/inputs/x", {4, 3}, counted<float>(12))
      .array("/inputs/other", {9}, counted<float>(9))
      .array("/targets/y", {4, 1}, counted<std::int32_t>(4));
  const auto data = open_hdf5_dataset(path, {{field("features", {3})}, {field("label", {}, DType::int32)}});
  CHECK(Rows<float, std::int32_t>(*data, {3}).y[0] == 3);
  CHECK_THAT(data->description(), Contains("/inputs/other isn't used") && Contains("4 samples"));
}

TEST_CASE("numbers are converted where nothing is lost", "[data][hdf5]") {
  const ScratchFolder folder;
  const std::string path = folder / "data.h5";
  const auto open = [&](DType x, DType y) {
    return open_hdf5_dataset(path, {{field("x", {2}, x)}, {field("y", {}, y)}});
  };
  const float infinity = std::numeric_limits<float>::infinity();
  Hdf5Writer(path)
      .array<double>("/inputs/x", {2, 2}, {0.1, double{infinity}, std::nan(""), -1e-300})
      .array<std::int64_t>("/targets/y", {2}, {-2147483648, 2147483647});
  const Rows<float, std::int32_t> narrowed(*open(DType::float32, DType::int32), {0, 1});
  CHECK(narrowed.x[0] == 0.1F);
  CHECK(narrowed.x[1] == infinity);
  CHECK(std::isnan(narrowed.x[2]));
  CHECK(narrowed.x[3] == 0.0F);
  CHECK(narrowed.y == std::vector<std::int32_t>{-2147483648, 2147483647});

  Hdf5Writer(path).array<float>("/inputs/x", {1, 2}, {0.1F, 2}).array<std::uint8_t>("/targets/y", {1}, {255});
  const Rows<double, float> widened(*open(DType::float64, DType::float32), {0});
  CHECK(widened.x == std::vector<double>{double{0.1F}, 2});
  CHECK(widened.y[0] == 255.0F);

  Hdf5Writer(path)
      .array<std::int16_t>("/inputs/x", {1, 2}, {-300, 300})
      .array<std::int32_t>("/targets/y", {1}, {1 << 24});
  const Rows<std::int32_t, float> integers(*open(DType::int32, DType::float32), {0});
  CHECK(integers.x == std::vector<std::int32_t>{-300, 300});
  CHECK(integers.y[0] == 16777216.0F);
}

TEST_CASE("sample weights are one a sample or one an entry of the loss", "[data][hdf5]") {
  const ScratchFolder folder;
  const std::string path = folder / "data.h5";
  const auto open = [&](const std::string& name, std::vector<hsize_t> shape, Shape entries) {
    std::size_t elements = 1;
    for (const hsize_t size : shape) elements *= size;
    Hdf5Writer(path)
        .array("/inputs/x", {2, 3}, counted<float>(6))
        .array("/targets/y", {2}, counted<std::int32_t>(2))
        .array("/sample_weights" + name, std::move(shape), counted<double>(elements));
    DataRequest request = k_request;
    request.weights = {field("y", std::move(entries))};
    return open_hdf5_dataset(path, request);
  };
  const auto shape_of = [&](const std::string& name, std::vector<hsize_t> shape, Shape entries) {
    return open(name, std::move(shape), std::move(entries))->weights().at(0).spec.shape;
  };
  CHECK(shape_of("", {2}, {}) == Shape{});
  CHECK(shape_of("/y", {2, 1}, {}) == Shape{});
  CHECK(shape_of("", {2}, {1}) == Shape{1});
  CHECK(shape_of("/y", {2, 4}, {4}) == Shape{4});
  CHECK(shape_of("", {2, 1}, {4}) == Shape{1});
  CHECK(shape_of("", {2, 4, 1}, {4}) == Shape{4});
  CHECK_THROWS_WITH(open("", {2}, {4}),
                    Contains("/sample_weights is (2,)") && Contains("(4,)") && Contains("(1,)"));
  CHECK_THROWS_WITH(open("/y", {2, 3}, {4}), Contains("/sample_weights/y is (2, 3)"));
  CHECK_THROWS_WITH(open("/z", {2}, {}), Contains("lacks /sample_weights/y"));
  CHECK_THROWS_WITH(open("", {3}, {}), Contains("has 3 samples"));

  const auto data = open("", {2, 1}, {});
  float weights[2] = {};
  std::vector<float> x(6);
  std::vector<std::int32_t> y(2);
  data->read(std::vector<std::int64_t>{1, 0}, std::vector<Tensor>{{x.data(), DType::float32, {2, 3}},
                                                                  {y.data(), DType::int32, {2}},
                                                                  {weights, DType::float32, {2}}});
  CHECK(weights[0] == 1.0F);
  CHECK(weights[1] == 0.0F);
  const auto unweighted = open_hdf5_dataset(path, k_request);
  CHECK(unweighted->weights().empty());
  CHECK_THAT(unweighted->description(), Contains("/sample_weights isn't used"));
}

TEST_CASE("NumPy's bool counts as 0 and 1", "[data][hdf5]") {
  const ScratchFolder folder;
  const std::string path = folder / "data.h5";
  {
    const Hdf5Writer writer(path);
    const hdf5::Datatype boolean(H5Tenum_create(H5T_NATIVE_INT8));
    std::int8_t value = 0;
    H5Tenum_insert(boolean.get(), "FALSE", &value);
    value = 1;
    H5Tenum_insert(boolean.get(), "TRUE", &value);
    const std::vector<hsize_t> shape{3};
    const hdf5::Dataspace space(H5Screate_simple(1, shape.data(), nullptr));
    const std::vector<std::int8_t> values{1, 0, 1};
    for (const char* name : {"/inputs/x", "/targets/y"}) {
      const hdf5::Dataset dataset(H5Dcreate2(writer.file(), name, boolean.get(), space.get(), writer.links(),
                                             H5P_DEFAULT, H5P_DEFAULT));
      REQUIRE(H5Dwrite(dataset.get(), boolean.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
    }
  }
  const auto data = open_hdf5_dataset(path, {{field("x", {1})}, {field("y", {}, DType::int32)}});
  const Rows<float, std::int32_t> rows(*data, {0, 1, 2});
  CHECK(rows.x == std::vector<float>{1, 0, 1});
  CHECK(rows.y == std::vector<std::int32_t>{1, 0, 1});
}

TEST_CASE("values that don't fit are named when they are read", "[data][hdf5]") {
  const ScratchFolder folder;
  const std::string path = folder / "data.h5";
  Hdf5Writer(path)
      .array<double>("/inputs/x", {2, 3}, {0, 0, 0, 0, 1e39, 0})
      .array<std::int64_t>("/targets/y", {2}, {1, std::int64_t{1} << 31});
  const auto data = open_hdf5_dataset(path, k_request);
  using R = Rows<float, std::int32_t>;
  CHECK_NOTHROW(R(*data, {0}));
  CHECK_THROWS_WITH(R(*data, {1}), Contains("/inputs/x, sample 1") && Contains("too large for float32"));
  const auto labels = open_hdf5_dataset(path, {{field("x", {3}, DType::float64)}, k_request.targets});
  using D = Rows<double, std::int32_t>;
  CHECK_THROWS_WITH(D(*labels, {0, 1}),
                    Contains("/targets/y, sample 1") && Contains("2147483648") && Contains("int32"));
  const std::string integers = folder / "integers.h5";
  Hdf5Writer(integers)
      .array<std::int32_t>("/inputs/x", {1, 3}, {0, -(1 << 24) - 1, 0})
      .array<std::uint64_t>("/targets/y", {1}, {std::numeric_limits<std::uint64_t>::max()});
  CHECK_THROWS_WITH(R(*open_hdf5_dataset(integers, k_request), {0}), Contains("-16777217"));
  const auto big = open_hdf5_dataset(integers, {{field("x", {3}, DType::int32)}, k_request.targets});
  using I = Rows<std::int32_t, std::int32_t>;
  CHECK_THROWS_WITH(I(*big, {0}), Contains("/targets/y"));
}

TEST_CASE("arrays that don't suit the model are refused with both shapes", "[data][hdf5]") {
  const ScratchFolder folder;
  const std::string path = folder / "data.h5";
  const auto refusal = [&](const DataRequest& request = k_request) -> std::string {
    try {
      open_hdf5_dataset(path, request);
    } catch (const DataError& error) {
      return error.what();
    }
    return "accepted";
  };
  Hdf5Writer(path)
      .array("/inputs/x", {2, 4}, counted<float>(8))
      .array("/targets/y", {2}, counted<std::int32_t>(2));
  CHECK_THAT(refusal(), Contains("/inputs/x is (2, 4) float32") && Contains("takes samples of shape (3,)"));
  Hdf5Writer(path).array("/inputs/x", {2, 3}, counted<float>(6)).array("/targets/y", {2}, counted<float>(2));
  CHECK_THAT(refusal(), Contains("/targets/y is (2,) float32") && Contains("without loss"));
  Hdf5Writer(path)
      .array("/inputs/x", {2, 3}, counted<float>(6))
      .array("/targets/y", {3}, counted<std::int32_t>(3));
  CHECK_THAT(refusal(), Contains("/targets/y has 3 samples") && Contains("/inputs/x has 2"));
  Hdf5Writer(path).array<float>("/inputs/x", {0, 3}, {}).array<std::int32_t>("/targets/y", {0}, {});
  CHECK_THAT(refusal(), Contains("no samples"));
  Hdf5Writer(path)
      .array("/inputs/z", {2, 3}, counted<float>(6))
      .array("/targets/y", {2}, counted<std::int32_t>(2));
  CHECK_THAT(refusal(),
             Contains("lacks /inputs/x") && Contains("it has /inputs/z (2, 3) float32, /targets/y"));
  CHECK_THAT(refusal({{field("z", {3}), field("x", {3})}, k_request.targets}), Contains("lacks /inputs/x"));
  Hdf5Writer(path).array("/inputs/x", {2, 3}, counted<float>(6));
  CHECK_THAT(refusal(), Contains("no group /targets") && Contains("/inputs/x"));
  { const Hdf5Writer empty(path); }
  CHECK_THAT(refusal(), Contains("no group /inputs") && Contains("no arrays"));
}

TEST_CASE("files that aren't whole HDF5 files are refused", "[data][hdf5]") {
  const ScratchFolder folder;
  CHECK_THROWS_WITH(open_hdf5_dataset(folder / "none.h5", k_request),
                    Contains("none.h5") && Contains("No such file"));
  CHECK_THROWS_AS(open_hdf5_dataset(folder.write("text.h5", "not HDF5"), k_request), DataError);
  const std::string path = simple_file(folder, 1000);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
  CHECK_THROWS_WITH(open_hdf5_dataset(path, k_request), Contains("shorter than it was"));
}

TEST_CASE("links and layouts that lead out of the file are refused", "[data][hdf5]") {
  const ScratchFolder folder;
  const std::string real = simple_file(folder, 4);
  const std::string path = folder / "hostile.h5";
  const auto refused = [&] { CHECK_THROWS_AS(open_hdf5_dataset(path, k_request), DataError); };
  {
    Hdf5Writer writer(path);
    writer.array("/targets/y", {4}, counted<std::int32_t>(4));
    REQUIRE(H5Lcreate_external(real.c_str(), "/inputs/x", writer.file(), "/inputs/x", writer.links(),
                               H5P_DEFAULT) >= 0);
  }
  refused();
  {
    Hdf5Writer writer(path);
    writer.array("/a", {4, 3}, counted<float>(12)).array("/targets/y", {4}, counted<std::int32_t>(4));
    REQUIRE(H5Lcreate_soft("/a", writer.file(), "/inputs/x", writer.links(), H5P_DEFAULT) >= 0);
  }
  refused();
  for (const bool is_virtual : {true, false}) {
    CAPTURE(is_virtual);
    {
      Hdf5Writer writer(path);
      writer.array("/targets/y", {4}, counted<std::int32_t>(4));
      const std::vector<hsize_t> shape{4, 3};
      const hdf5::Dataspace space(H5Screate_simple(2, shape.data(), nullptr));
      const hdf5::PropertyList creation(H5Pcreate(H5P_DATASET_CREATE));
      if (is_virtual) {
        H5Pset_virtual(creation.get(), space.get(), real.c_str(), "/inputs/x", space.get());
      } else {
        H5Pset_external(creation.get(), real.c_str(), 0, 48);
      }
      const hdf5::Dataset dataset(H5Dcreate2(writer.file(), "/inputs/x", H5T_NATIVE_FLOAT, space.get(),
                                             writer.links(), creation.get(), H5P_DEFAULT));
      REQUIRE(dataset);
    }
    refused();
  }
}
