#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "runtime/hdf5/hdf5_file.hpp"

using namespace rankine;
using Catch::Matchers::Contains;

namespace {

std::vector<hsize_t> sizes_of(const Shape& shape) {
  return {shape.sizes().begin(), shape.sizes().end()};
}

hdf5::Dataspace space_of(const Shape& shape) {
  const auto sizes = sizes_of(shape);
  return hdf5::Dataspace(H5Screate_simple(shape.rank(), sizes.data(), nullptr));
}

void add(const hdf5::File& file, const char* name, const Shape& shape, const std::vector<float>& values) {
  const auto space = space_of(shape);
  const hdf5::Dataset dataset(
      H5Dcreate2(file.get(), name, H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  REQUIRE(dataset);
  REQUIRE(H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
}

void add_with(const hdf5::File& file, const char* name, const Shape& shape,
              const hdf5::PropertyList& creation) {
  const auto space = space_of(shape);
  const hdf5::Dataset dataset(
      H5Dcreate2(file.get(), name, H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT));
  REQUIRE(dataset);
}

hdf5::File sample() {
  hdf5::File file = hdf5::create_image("sample.h5");
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.5F);
  const hdf5::Group group(H5Gcreate2(file.get(), "inputs", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  add(file, "inputs/x", {4, 3}, values);
  add(file, "top", {12}, values);
  return file;
}

std::filesystem::path temporary(const std::string& name) {
  return std::filesystem::temp_directory_path() / ("rankine_hdf5_" + std::to_string(::getpid()) + "_" + name);
}

void write(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

TEST_CASE("HDF5 datasets are read whole and by rows, converted", "[hdf5]") {
  const hdf5::File file = sample();
  const auto dataset = hdf5::open_dataset(file.get(), "/inputs/x");
  const auto info = hdf5::info_of(dataset);
  CHECK(info.shape == Shape{4, 3});
  CHECK(info.dtype == "float32");
  CHECK(info.stored_bytes == 48);

  std::array<double, 12> whole{};
  hdf5::read_all(dataset, {whole.data(), DType::float64, {4, 3}});
  CHECK(whole[11] == 11.5);

  std::array<float, 6> rows{};
  hdf5::read_rows(dataset, 1, {rows.data(), DType::float32, {2, 3}});
  CHECK(rows == std::array<float, 6>{3.5F, 4.5F, 5.5F, 6.5F, 7.5F, 8.5F});
  hdf5::read_rows(dataset, 4, {rows.data(), DType::float32, {0, 3}});

  CHECK_THROWS_WITH(hdf5::read_rows(dataset, 3, {rows.data(), DType::float32, {2, 3}}),
                    Contains("from row 3"));
  CHECK_THROWS_WITH(hdf5::read_all(dataset, {whole.data(), DType::float64, {3, 4}}),
                    Contains("(4, 3)") && Contains("(3, 4)"));
}

TEST_CASE("HDF5 paths lead to what they name", "[hdf5]") {
  const hdf5::File file = sample();
  CHECK(hdf5::exists(file.get(), "inputs/x"));
  CHECK_FALSE(hdf5::exists(file.get(), "inputs/y"));
  CHECK_FALSE(hdf5::exists(file.get(), "top/x"));
  CHECK_THROWS_WITH(hdf5::open_dataset(file.get(), "inputs/y"),
                    Contains("sample.h5") && Contains("no dataset inputs/y"));
  CHECK_THROWS_WITH(hdf5::open_dataset(file.get(), "inputs"), Contains("isn't a dataset"));
  CHECK_THROWS_WITH(hdf5::open_group(file.get(), "top"), Contains("isn't a group"));
  const auto list = hdf5::entries(file.get());
  REQUIRE(list.size() == 2);
  CHECK(list[0].name == "inputs");
  CHECK(list[0].kind == hdf5::Kind::group);
  CHECK(list[1].kind == hdf5::Kind::dataset);
}

TEST_CASE("An HDF5 image keeps what was written, and two of one name stay apart", "[hdf5]") {
  const auto bytes = hdf5::image_of(sample());
  const hdf5::File first = hdf5::open_image(bytes, "one.h5");
  const auto empty = hdf5::image_of(hdf5::create_image("one.h5"));
  const hdf5::File second = hdf5::open_image(empty, "one.h5");
  CHECK(hdf5::entries(first.get()).size() == 2);
  CHECK(hdf5::entries(second.get()).empty());
  CHECK(hdf5::file_name(first.get()) == "one.h5");
  // The earliest format: superblock version 0 follows the signature.
  CHECK(bytes[8] == std::byte{0});
}

TEST_CASE("Text attributes of both kinds are read", "[hdf5]") {
  const hdf5::File file = sample();
  const hdf5::Dataspace scalar(H5Screate(H5S_SCALAR));
  const hdf5::Datatype variable(H5Tcopy(H5T_C_S1));
  H5Tset_size(variable.get(), H5T_VARIABLE);
  const hdf5::Attribute a(
      H5Acreate2(file.get(), "variable", variable.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
  const char* text = "dense_1";
  H5Awrite(a.get(), variable.get(), &text);
  const hdf5::Datatype fixed(H5Tcopy(H5T_C_S1));
  H5Tset_size(fixed.get(), 4);
  const hdf5::Attribute b(
      H5Acreate2(file.get(), "fixed", fixed.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
  H5Awrite(b.get(), fixed.get(), "abc");
  const hdf5::Attribute c(
      H5Acreate2(file.get(), "number", H5T_STD_I32LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT));

  CHECK(hdf5::string_attribute(file.get(), "variable") == "dense_1");
  CHECK(hdf5::string_attribute(file.get(), "fixed") == "abc");
  CHECK_FALSE(hdf5::string_attribute(file.get(), "number"));
  CHECK_FALSE(hdf5::string_attribute(file.get(), "none"));
}

TEST_CASE("Files that can't be opened say why", "[hdf5]") {
  CHECK_THROWS_WITH(hdf5::open_file(temporary("none")), Contains("No such file"));
  CHECK_FALSE(std::filesystem::exists(temporary("none")));

  const auto path = temporary("broken.h5");
  write(path, std::array<std::byte, 100>{});
  CHECK_THROWS_WITH(hdf5::open_file(path), Contains("isn't an HDF5 file"));

  auto bytes = hdf5::image_of(sample());
  bytes.resize(bytes.size() - 60);
  write(path, bytes);
  CHECK_THROWS_WITH(hdf5::open_file(path), Contains("truncated file: eof = ") && Contains("cut off"));
  CHECK_THROWS_WITH(hdf5::open_image(bytes, "m.keras"), Contains("m.keras") && Contains("cut off"));
  CHECK_THROWS_AS(hdf5::open_image({}, "m.keras"), hdf5::Hdf5Error);
  std::filesystem::remove(path);
}

TEST_CASE("Links that could leave the file are refused", "[hdf5]") {
  const hdf5::File file = sample();
  H5Lcreate_soft("/inputs", file.get(), "soft", H5P_DEFAULT, H5P_DEFAULT);
  CHECK_THROWS_WITH(hdf5::open_dataset(file.get(), "soft/x"), Contains("soft/x is a soft link"));
  CHECK_THROWS_WITH(hdf5::entries(file.get()), Contains("soft is a soft link"));
  H5Ldelete(file.get(), "soft", H5P_DEFAULT);
  H5Lcreate_external("/etc/passwd", "/", file.get(), "outside", H5P_DEFAULT, H5P_DEFAULT);
  CHECK_THROWS_WITH(hdf5::open_group(file.get(), "outside"), Contains("an external link"));
  CHECK_THROWS_WITH(hdf5::exists(file.get(), "outside"), Contains("an external link"));
}

TEST_CASE("Datasets whose values lie elsewhere or nowhere are refused", "[hdf5]") {
  const hdf5::File file = sample();

  const hdf5::PropertyList external(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_external(external.get(), "values.bin", 0, 48);
  add_with(file, "external", {12}, external);
  CHECK_THROWS_WITH(hdf5::open_dataset(file.get(), "external"), Contains("external storage"));

  const hdf5::PropertyList virtual_layout(H5Pcreate(H5P_DATASET_CREATE));
  const auto space = space_of({12});
  H5Pset_virtual(virtual_layout.get(), space.get(), "other.h5", "top", space.get());
  add_with(file, "virtual", {12}, virtual_layout);
  CHECK_THROWS_WITH(hdf5::open_dataset(file.get(), "virtual"), Contains("virtual dataset"));

  const hdf5::PropertyList plain(H5Pcreate(H5P_DATASET_CREATE));
  add_with(file, "bomb", {1 << 16, 1 << 15}, plain);
  CHECK_THROWS_WITH(hdf5::open_dataset(file.get(), "bomb"), Contains("stores only 0 bytes"));
}
