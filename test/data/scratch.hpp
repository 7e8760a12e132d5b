#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/hdf5/hdf5_handle.hpp"

namespace rankine::test {

/// A folder of one test, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rankine-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("can't make a folder " + name);
    path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return *this / name;
  }

 private:
  std::filesystem::path path_;
};

template <class T>
hid_t hdf5_type() {
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::is_same_v<T, std::uint64_t>) return H5T_NATIVE_UINT64;
  if constexpr (std::is_same_v<T, std::int16_t>) return H5T_NATIVE_INT16;
}

/// Writes an HDF5 file for a test.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(const std::string& path)
      : file_(hdf5::checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), path)),
        links_(H5Pcreate(H5P_LINK_CREATE)) {
    H5Pset_create_intermediate_group(links_.get(), 1);
  }
  hid_t file() const { return file_.get(); }
  hid_t links() const { return links_.get(); }

  /// An array; with `chunk` rows a chunk, compressed with gzip.
  template <class T>
  Hdf5Writer& array(const std::string& path, const std::vector<hsize_t>& shape, const std::vector<T>& values,
                    hsize_t chunk = 0) {
    const int rank = static_cast<int>(shape.size());
    const hdf5::Dataspace space(hdf5::checked(H5Screate_simple(rank, shape.data(), nullptr), path));
    const hdf5::PropertyList creation(H5Pcreate(H5P_DATASET_CREATE));
    if (chunk > 0) {
      std::vector<hsize_t> chunks = shape;
      chunks[0] = chunk;
      H5Pset_chunk(creation.get(), rank, chunks.data());
      H5Pset_shuffle(creation.get());
      H5Pset_deflate(creation.get(), 4);
    }
    const hdf5::Dataset dataset(hdf5::checked(
        H5Dcreate2(file(), path.c_str(), hdf5_type<T>(), space.get(), links(), creation.get(), H5P_DEFAULT),
        path));
    if (!values.empty()) {
      hdf5::checked(H5Dwrite(dataset.get(), hdf5_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
                    path);
    }
    return *this;
  }

 private:
  hdf5::File file_;
  hdf5::PropertyList links_;
};

}  // namespace rankine::test
