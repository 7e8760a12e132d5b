#include "runtime/hdf5/hdf5_file.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rankine::hdf5 {
namespace {

constexpr hsize_t k_bomb_floor = hsize_t{4} << 30;  // Keras's own limits for a shape without data behind it
constexpr hsize_t k_bomb_ratio = 1000;

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// HDF5's reason for not opening a file, with what it means.
std::string explain_open(const std::string& text) {
  if (contains(text, "truncated file"))
    return text +
           ". The file is shorter than it was when it was written (a copy or a save that was cut off): copy "
           "it "
           "again or use another one";
  if (contains(text, "file signature not found"))
    return text + ". This isn't an HDF5 file, or its beginning is damaged";
  if (contains(text, "unable to lock file"))
    return text +
           ". Another program has the file open for writing, or the file system has no locks: wait for it, "
           "or "
           "set HDF5_USE_FILE_LOCKING=FALSE if you know that nobody writes";
  return text;
}

File checked_open(hid_t id, const std::string& what) {
  try {
    return File(checked(id, what));
  } catch (const Hdf5Error& error) {
    throw Hdf5Error(explain_open(error.what()));
  }
}

/// HDF5 takes two images of one name for one file, so names are made different.
std::string unique_name(const std::string& label) {
  static std::atomic<std::uint64_t> next{0};
  return label + " #" + std::to_string(++next);
}

PropertyList core_access() {
  PropertyList access(checked(H5Pcreate(H5P_FILE_ACCESS), "property list"));
  checked(H5Pset_fapl_core(access.get(), std::size_t{1} << 20, false), "file in memory");
  return access;
}

/// Checks that `name` in `group` is a hard link. False when there is no such link.
bool hard_link(hid_t group, const std::string& name, const std::string& path) {
  if (checked(H5Lexists(group, name.c_str(), H5P_DEFAULT), file_name(group) + ": " + path) == 0) return false;
  H5L_info_t link;
  checked(H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT), file_name(group) + ": " + path);
  if (link.type == H5L_TYPE_HARD) return true;
  const char* kind = link.type == H5L_TYPE_SOFT       ? "a soft"
                     : link.type == H5L_TYPE_EXTERNAL ? "an external"
                                                      : "a user-defined";
  throw Hdf5Error(
      file_name(group) + ": " + path + " is " + kind +
      " link, which could lead out of the file; only real groups and datasets are read. Copy the data "
      "into the file");
}

Kind kind_of(H5O_type_t type) {
  return type == H5O_TYPE_GROUP ? Kind::group : type == H5O_TYPE_DATASET ? Kind::dataset : Kind::other;
}

void close_object(hid_t id) {
  const Lock lock;
  H5Oclose(id);
}
using Object = UniqueHandle<hid_t, close_object, no_id>;

Kind kind_of_object(hid_t id) {
  H5O_info_t info;
  checked(H5Oget_info2(id, &info, H5O_INFO_BASIC), "object");
  return kind_of(info.type);
}

/// Follows a path; an empty object if it leads nowhere.
Object follow(hid_t parent, const std::string& path) {
  Object here;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    const hid_t group = here ? here.get() : parent;
    if (here && kind_of_object(group) != Kind::group) return {};
    if (!hard_link(group, part, path)) return {};
    here = Object(checked(H5Oopen(group, part.c_str(), H5P_DEFAULT), file_name(parent) + ": " + path));
  }
  if (!here) here = Object(checked(H5Oopen(parent, ".", H5P_DEFAULT), file_name(parent)));
  return here;
}

Object follow_to(hid_t parent, const std::string& path, Kind kind) {
  Object object = follow(parent, path);
  const char* name = kind == Kind::group ? "group" : "dataset";
  if (!object) throw Hdf5Error(file_name(parent) + ": there is no " + name + " " + path);
  if (kind_of_object(object.get()) != kind)
    throw Hdf5Error(file_name(parent) + ": " + path + " isn't a " + name);
  return object;
}

void refuse_unsafe(const Dataset& dataset, const std::string& name) {
  const PropertyList creation(checked(H5Dget_create_plist(dataset.get()), name));
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  if (layout == H5D_VIRTUAL)
    throw Hdf5Error(name +
                    " is a virtual dataset, whose values lie in other files; copy them into this file");
  if (layout == H5D_CONTIGUOUS && H5Pget_external_count(creation.get()) > 0)
    throw Hdf5Error(name + " keeps its values in another file (external storage); copy them into this file");
  const DatasetInfo info = info_of(dataset);
  hsize_t declared = info.element_bytes;
  for (const std::int64_t size : info.shape.sizes())
    if (__builtin_mul_overflow(declared, static_cast<hsize_t>(size), &declared))
      throw Hdf5Error(name + " declares the impossible shape " + info.shape.to_string());
  if (declared > k_bomb_floor && declared / k_bomb_ratio > info.stored_bytes)
    throw Hdf5Error(name + " declares " + info.shape.to_string() + " (" + std::to_string(declared) +
                    " bytes) but stores only " + std::to_string(info.stored_bytes) +
                    " bytes; this is refused");
}

std::string integer_name(const Datatype& type) {
  return (H5Tget_sign(type.get()) == H5T_SGN_NONE ? "uint" : "int") +
         std::to_string(8 * H5Tget_size(type.get()));
}

std::string type_name(const Dataset& dataset, const Datatype& type) {
  switch (H5Tget_class(type.get())) {
    case H5T_FLOAT:
      return "float" + std::to_string(8 * H5Tget_size(type.get()));
    case H5T_INTEGER:
      return integer_name(type);
    case H5T_ENUM:
      return H5Tget_nmembers(type.get()) == 2 ? "bool" : "enum";
    case H5T_OPAQUE:
      return string_attribute(dataset.get(), "dtype").value_or("opaque");
    case H5T_STRING:
      return "string";
    case H5T_COMPOUND:
      return "compound";
    default:
      return "other";
  }
}

std::string read_variable_text(const Attribute& attribute, const Datatype& type, const Dataspace& space) {
  char* text = nullptr;
  checked(H5Aread(attribute.get(), type.get(), &text), "text attribute");
  std::string result = text == nullptr ? "" : text;
  H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, &text);
  return result;
}

std::string object_name(hid_t object) {
  std::array<char, 1024> name{};
  H5Iget_name(object, name.data(), name.size());
  return file_name(object) + ": " + name.data();
}

}  // namespace

File open_file(const std::string& path) {
  const Lock lock;
  // HDF5's text for a plain missing file is long; C's is what people know.
  std::FILE* probe = std::fopen(path.c_str(), "rb");
  if (probe == nullptr) throw Hdf5Error("can't open " + path + ": " + std::strerror(errno));
  std::fclose(probe);
  return checked_open(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "can't read " + path + " as HDF5");
}

File open_image(std::span<const std::byte> image, const std::string& label) {
  const Lock lock;
  if (image.empty()) throw Hdf5Error(label + " is empty");
  const PropertyList access = core_access();
  // HDF5 only reads from it, though its signature says otherwise.
  checked(H5Pset_file_image(access.get(), const_cast<std::byte*>(image.data()), image.size()), label);
  return checked_open(H5Fopen(unique_name(label).c_str(), H5F_ACC_RDONLY, access.get()),
                      "can't read " + label + " as HDF5");
}

File create_image(const std::string& label) {
  const Lock lock;
  const PropertyList access = core_access();
  return File(
      checked(H5Fcreate(unique_name(label).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), label));
}

std::vector<std::byte> image_of(const File& file) {
  const Lock lock;
  const std::string name = file_name(file.get());
  checked(H5Fflush(file.get(), H5F_SCOPE_GLOBAL), name);
  const hid_t size = checked(H5Fget_file_image(file.get(), nullptr, 0), name);
  std::vector<std::byte> image(static_cast<std::size_t>(size));
  checked(H5Fget_file_image(file.get(), image.data(), image.size()), name);
  return image;
}

std::string file_name(hid_t object) {
  const Lock lock;
  const ssize_t length = H5Fget_name(object, nullptr, 0);
  if (length <= 0) return "HDF5 file";
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  H5Fget_name(object, name.data(), name.size());
  name.pop_back();
  return name.substr(0, name.rfind(" #"));
}

std::vector<Entry> entries(hid_t group) {
  const Lock lock;
  const std::string name = object_name(group);
  H5G_info_t info;
  checked(H5Gget_info(group, &info), name);
  std::vector<Entry> result;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto length =
        checked(H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, nullptr, 0, H5P_DEFAULT), name);
    std::string entry(static_cast<std::size_t>(length) + 1, '\0');
    checked(H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, entry.data(), entry.size(),
                               H5P_DEFAULT),
            name);
    entry.pop_back();
    hard_link(group, entry, entry);
    H5O_info_t object;
    checked(H5Oget_info_by_name2(group, entry.c_str(), &object, H5O_INFO_BASIC, H5P_DEFAULT),
            name + "/" + entry);
    result.push_back({entry, kind_of(object.type), object.addr});
  }
  return result;
}

Group open_group(hid_t parent, const std::string& path) {
  const Lock lock;
  return Group(follow_to(parent, path, Kind::group).release());
}

Dataset open_dataset(hid_t parent, const std::string& path) {
  const Lock lock;
  Dataset dataset(follow_to(parent, path, Kind::dataset).release());
  refuse_unsafe(dataset, file_name(parent) + ": " + path);
  return dataset;
}

bool exists(hid_t parent, const std::string& path) {
  const Lock lock;
  return static_cast<bool>(follow(parent, path));
}

DatasetInfo info_of(const Dataset& dataset) {
  const Lock lock;
  const Dataspace space(checked(H5Dget_space(dataset.get()), "dataspace"));
  const Datatype type(checked(H5Dget_type(dataset.get()), "datatype"));
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL)
    throw Hdf5Error(object_name(dataset.get()) + " has no values");
  std::vector<hsize_t> sizes(
      static_cast<std::size_t>(checked(H5Sget_simple_extent_ndims(space.get()), "dimensions")));
  checked(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), "dimensions");
  return {Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end())), type_name(dataset, type),
          H5Tget_size(type.get()), static_cast<std::size_t>(H5Dget_storage_size(dataset.get()))};
}

bool is_number(const DatasetInfo& info) {
  static constexpr std::array names{"int8",   "int16",  "int32",   "int64",   "uint8",   "uint16",
                                    "uint32", "uint64", "float16", "float32", "float64", "bool"};
  return std::find(names.begin(), names.end(), info.dtype) != names.end();
}

bool has_attribute(hid_t object, const std::string& name) {
  const Lock lock;
  return H5Aexists(object, name.c_str()) > 0;
}

std::optional<std::string> string_attribute(hid_t object, const std::string& name) {
  const Lock lock;
  if (!has_attribute(object, name)) return std::nullopt;
  const std::string what = object_name(object) + ", attribute " + name;
  const Attribute attribute(checked(H5Aopen(object, name.c_str(), H5P_DEFAULT), what));
  const Datatype type(checked(H5Aget_type(attribute.get()), what));
  const Dataspace space(checked(H5Aget_space(attribute.get()), what));
  if (H5Tget_class(type.get()) != H5T_STRING || H5Sget_simple_extent_type(space.get()) != H5S_SCALAR)
    return std::nullopt;
  if (H5Tis_variable_str(type.get()) > 0) return read_variable_text(attribute, type, space);
  std::string text(H5Tget_size(type.get()), '\0');
  checked(H5Aread(attribute.get(), type.get(), text.data()), what);
  return text.substr(0, text.find('\0'));
}

hid_t memory_type(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return H5T_NATIVE_DOUBLE;
    case DType::int32:
      return H5T_NATIVE_INT32;
    default:
      return H5T_NATIVE_FLOAT;
  }
}

void read_all(const Dataset& dataset, Tensor out) {
  const Lock lock;
  const DatasetInfo info = info_of(dataset);
  if (info.shape != out.shape || !is_number(info))
    throw Hdf5Error(object_name(dataset.get()) + " is " + info.dtype + " " + info.shape.to_string() +
                    ", but numbers of shape " + out.shape.to_string() + " are wanted");
  if (out.elements() == 0) return;
  checked(H5Dread(dataset.get(), memory_type(out.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data),
          "can't read " + object_name(dataset.get()));
}

void read_raw(const Dataset& dataset, std::span<std::byte> out) {
  const Lock lock;
  const DatasetInfo info = info_of(dataset);
  const std::string name = object_name(dataset.get());
  if (static_cast<std::size_t>(info.shape.elements()) * info.element_bytes != out.size())
    throw Hdf5Error(name + " has another size than the " + std::to_string(out.size()) + " bytes wanted");
  if (out.empty()) return;
  const Datatype type(checked(H5Dget_type(dataset.get()), name));
  checked(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()),
          "can't read " + name);
}

void read_rows(const Dataset& dataset, std::int64_t first, Tensor out) {
  const Lock lock;
  const DatasetInfo info = info_of(dataset);
  const std::int64_t rows = out.shape.rank() == 0 ? 0 : out.shape[0];
  Shape all = out.shape;
  if (all.rank() > 0 && info.shape.rank() > 0) all[0] = info.shape[0];
  if (info.shape.rank() == 0 || info.shape != all || !is_number(info) || first < 0 ||
      first > info.shape[0] - rows)
    throw Hdf5Error(object_name(dataset.get()) + " is " + info.dtype + " " + info.shape.to_string() +
                    ", but numbers of shape " + out.shape.to_string() + " from row " + std::to_string(first) +
                    " are wanted");
  if (out.elements() == 0) return;
  std::vector<hsize_t> start(static_cast<std::size_t>(out.shape.rank()), 0);
  const std::vector<hsize_t> count(out.shape.sizes().begin(), out.shape.sizes().end());
  start[0] = static_cast<hsize_t>(first);
  const std::string what = "can't read " + object_name(dataset.get());
  const Dataspace stored(checked(H5Dget_space(dataset.get()), what));
  checked(H5Sselect_hyperslab(stored.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
          what);
  const Dataspace memory(checked(H5Screate_simple(out.shape.rank(), count.data(), nullptr), what));
  checked(H5Dread(dataset.get(), memory_type(out.dtype), memory.get(), stored.get(), H5P_DEFAULT, out.data),
          what);
}

}  // namespace rankine::hdf5
