#include "hdf5_listing.hpp"

#include <algorithm>

namespace rankine::test {
namespace {

std::string type_text(const hdf5::Datatype& type) {
  const H5T_class_t kind = H5Tget_class(type.get());
  std::string text = "class " + std::to_string(kind) + " size " + std::to_string(H5Tget_size(type.get()));
  if (kind == H5T_INTEGER || kind == H5T_FLOAT) text += " order " + std::to_string(H5Tget_order(type.get()));
  if (kind == H5T_INTEGER) text += " sign " + std::to_string(H5Tget_sign(type.get()));
  if (kind == H5T_STRING)
    text += " variable " + std::to_string(H5Tis_variable_str(type.get())) + " cset " +
            std::to_string(H5Tget_cset(type.get())) + " pad " + std::to_string(H5Tget_strpad(type.get()));
  return text;
}

void list_attributes(hid_t object, const std::string& path, std::vector<std::string>& lines) {
  H5O_info_t info;
  hdf5::checked(H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS), path);
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    const hdf5::Attribute attribute(
        H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT));
    std::string name(64, '\0');
    H5Aget_name(attribute.get(), name.size(), name.data());
    name.resize(name.find('\0'));
    const hdf5::Datatype type(H5Aget_type(attribute.get()));
    const hdf5::Dataspace space(H5Aget_space(attribute.get()));
    lines.push_back(path + " @" + name + " " + type_text(type) + " extent " +
                    std::to_string(H5Sget_simple_extent_type(space.get())) + " = " +
                    hdf5::string_attribute(object, name).value_or("?"));
  }
}

void list_dataset(const hdf5::Dataset& dataset, const std::string& path, std::vector<std::string>& lines) {
  const hdf5::Datatype type(H5Dget_type(dataset.get()));
  const hdf5::Dataspace space(H5Dget_space(dataset.get()));
  const hdf5::PropertyList creation(H5Dget_create_plist(dataset.get()));
  lines.push_back(path + " dataset " + type_text(type) + " extent " +
                  std::to_string(H5Sget_simple_extent_type(space.get())) + " shape " +
                  hdf5::info_of(dataset).shape.to_string() + " layout " +
                  std::to_string(H5Pget_layout(creation.get())) + " filters " +
                  std::to_string(H5Pget_nfilters(creation.get())));
  list_attributes(dataset.get(), path, lines);
}

void list_group(const hdf5::Group& group, const std::string& path, std::vector<std::string>& lines) {
  H5G_info_t info;
  hdf5::checked(H5Gget_info(group.get(), &info), path);
  lines.push_back(path + " group storage " + std::to_string(info.storage_type) + " links " +
                  std::to_string(info.nlinks));
  list_attributes(group.get(), path, lines);
  for (const auto& entry : hdf5::entries(group.get())) {
    if (entry.kind == hdf5::Kind::group)
      list_group(hdf5::open_group(group.get(), entry.name), path + "/" + entry.name, lines);
    else
      list_dataset(hdf5::open_dataset(group.get(), entry.name), path + "/" + entry.name, lines);
  }
}

}  // namespace

std::vector<std::string> listing(const hdf5::File& file) {
  const hdf5::Lock lock;
  std::vector<std::string> lines;
  list_group(hdf5::open_group(file.get(), "/"), "", lines);
  return lines;
}

std::vector<std::string> listing_differences(const hdf5::File& ours, const hdf5::File& theirs) {
  const std::vector<std::string> mine = listing(ours);
  const std::vector<std::string> wanted = listing(theirs);
  std::vector<std::string> lines;
  const auto add = [&](const char* side, const std::vector<std::string>& from,
                       const std::vector<std::string>& other) {
    for (const std::string& line : from)
      if (std::find(other.begin(), other.end(), line) == other.end()) lines.push_back(side + line);
  };
  add("ours ", mine, wanted);
  add("theirs ", wanted, mine);
  return lines;
}

}  // namespace rankine::test
