#include "checkpoint/weights_writer.hpp"

#include "runtime/error.hpp"
#include "runtime/hdf5/hdf5_file.hpp"
#include "runtime/hdf5/hdf5_writing.hpp"

namespace rankine {
namespace {

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
  const hdf5::Group group = hdf5::create_group(file.get(), path);
  write_name(group, saved.name);
}

void write_array(const hdf5::File& file, const std::string& path, const Tensor& value) {
  if (!value) throw CheckpointError("can't write " + path + ": it has no values yet");
  hdf5::write_all(hdf5::create_dataset(file.get(), path, value.dtype, value.shape), value);
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
