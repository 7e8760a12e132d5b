#include "checkpoint/weights_writer.hpp"

#include "runtime/error.hpp"
#include "runtime/hdf5/hdf5_file.hpp"

namespace rankine {
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

/// Makes the groups of a path as they are needed.
hdf5::PropertyList with_parents() {
  hdf5::PropertyList list(hdf5::checked(H5Pcreate(H5P_LINK_CREATE), "property list"));
  hdf5::checked(H5Pset_create_intermediate_group(list.get(), 1), "property list");
  return list;
}

void write_name(const hdf5::Group& group, const std::string& name) {
  const hdf5::Datatype type(hdf5::checked(H5Tcopy(H5T_C_S1), name));
  hdf5::checked(H5Tset_size(type.get(), H5T_VARIABLE), name);
  hdf5::checked(H5Tset_cset(type.get(), H5T_CSET_UTF8), name);
  const hdf5::Dataspace scalar(hdf5::checked(H5Screate(H5S_SCALAR), name));
  const hdf5::Attribute attribute(hdf5::checked(
      H5Acreate2(group.get(), "name", type.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT), name));
  const char* text = name.c_str();
  hdf5::checked(H5Awrite(attribute.get(), type.get(), &text), name);
}

void write_group(const hdf5::File& file, const SaveGroup& saved) {
  const std::string path = saved.path.empty() ? "vars" : saved.path + "/vars";
  const hdf5::PropertyList parents = with_parents();
  const hdf5::Group group(
      hdf5::checked(H5Gcreate2(file.get(), path.c_str(), parents.get(), H5P_DEFAULT, H5P_DEFAULT), path));
  write_name(group, saved.name);
}

void write_array(const hdf5::File& file, const std::string& path, const Tensor& value) {
  if (!value) throw CheckpointError("can't write " + path + ": it has no values yet");
  const std::vector<hsize_t> sizes(value.shape.sizes().begin(), value.shape.sizes().end());
  const hdf5::Dataspace space(hdf5::checked(
      sizes.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(value.shape.rank(), sizes.data(), nullptr),
      path));
  const hdf5::PropertyList creation(hdf5::checked(H5Pcreate(H5P_DATASET_CREATE), path));
  hdf5::checked(H5Pset_obj_track_times(creation.get(), false), path);  // equal weights make equal files
  const hdf5::PropertyList parents = with_parents();
  const hdf5::Dataset dataset(
      hdf5::checked(H5Dcreate2(file.get(), path.c_str(), file_type(value.dtype), space.get(), parents.get(),
                               creation.get(), H5P_DEFAULT),
                    path));
  if (value.elements() == 0) return;
  hdf5::checked(
      H5Dwrite(dataset.get(), hdf5::memory_type(value.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data),
      path);
}

}  // namespace

std::vector<std::byte> weights_image(const WeightsContent& content) {
  const hdf5::Lock lock;
  try {
    const hdf5::File file = hdf5::create_image("weights");
    for (const SaveGroup& group : content.groups) write_group(file, group);
    if (!content.optimizer.empty() || !content.optimizer_name.empty())
      write_group(file, {"optimizer", content.optimizer_name});
    for (const Variable& variable : content.variables)
      write_array(file, variable.structural_path, variable.value);
    for (const StateTensor& tensor : content.optimizer)
      write_array(file, tensor.structural_path, tensor.local);
    return hdf5::image_of(file);
  } catch (const hdf5::Hdf5Error& error) {
    throw CheckpointError(std::string("can't lay out the weights file: ") + error.what());
  }
}

}  // namespace rankine
