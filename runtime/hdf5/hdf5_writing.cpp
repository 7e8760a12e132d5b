#include "runtime/hdf5/hdf5_writing.hpp"

#include <vector>

#include "runtime/hdf5/hdf5_file.hpp"

namespace rankine::hdf5 {
namespace {

hid_t file_type(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return H5T_IEEE_F64LE;
    case DType::int32:
      return H5T_STD_I32LE;
    default:
      return H5T_IEEE_F32LE;
  }
}

PropertyList with_parents() {
  PropertyList list(checked(H5Pcreate(H5P_LINK_CREATE), "property list"));
  checked(H5Pset_create_intermediate_group(list.get(), 1), "property list");
  return list;
}

std::vector<hsize_t> sizes_of(const Shape& shape) {
  return {shape.sizes().begin(), shape.sizes().end()};
}

}  // namespace

File create_file(const std::string& path) {
  const Lock lock;
  return File(checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                      "can't create '" + path + "'"));
}

Dataset create_dataset(hid_t parent, const std::string& path, DType dtype, const Shape& shape) {
  const Lock lock;
  const std::vector<hsize_t> sizes = sizes_of(shape);
  const Dataspace space(checked(
      sizes.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(shape.rank(), sizes.data(), nullptr), path));
  const PropertyList creation(checked(H5Pcreate(H5P_DATASET_CREATE), path));
  checked(H5Pset_obj_track_times(creation.get(), false), path);
  const PropertyList parents = with_parents();
  return Dataset(checked(H5Dcreate2(parent, path.c_str(), file_type(dtype), space.get(), parents.get(),
                                    creation.get(), H5P_DEFAULT),
                         path));
}

Group create_group(hid_t parent, const std::string& path) {
  const Lock lock;
  const PropertyList parents = with_parents();
  return Group(checked(H5Gcreate2(parent, path.c_str(), parents.get(), H5P_DEFAULT, H5P_DEFAULT), path));
}

void write_all(const Dataset& dataset, const Tensor& value) {
  const Lock lock;
  if (value.elements() == 0) return;
  checked(H5Dwrite(dataset.get(), memory_type(value.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data),
          "can't write " + file_name(dataset.get()));
}

void write_rows(const Dataset& dataset, std::int64_t first, const Tensor& rows) {
  const Lock lock;
  if (rows.elements() == 0) return;
  const std::string what = "can't write " + file_name(dataset.get());
  const std::vector<hsize_t> count = sizes_of(rows.shape);
  std::vector<hsize_t> start(count.size(), 0);
  start[0] = static_cast<hsize_t>(first);
  const Dataspace stored(checked(H5Dget_space(dataset.get()), what));
  checked(H5Sselect_hyperslab(stored.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
          what);
  const Dataspace memory(checked(H5Screate_simple(rows.shape.rank(), count.data(), nullptr), what));
  checked(
      H5Dwrite(dataset.get(), memory_type(rows.dtype), memory.get(), stored.get(), H5P_DEFAULT, rows.data),
      what);
}

}  // namespace rankine::hdf5
