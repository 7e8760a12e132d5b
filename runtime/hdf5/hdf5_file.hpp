#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/compute/tensor.hpp"
#include "runtime/hdf5/hdf5_handle.hpp"

namespace rankine::hdf5 {

/// Everything here throws Hdf5Error with the file's name, the object's path and what to do. None is
/// collective: files are opened by each rank for itself, for reading, or live in memory.

/// Opens a file for reading; nothing is ever created. Says in plain words what is wrong with a file that is
/// missing, isn't HDF5, is cut short or is locked.
File open_file(const std::string& path);
/// Opens a file that lies in memory (a member of an archive). `label` is its name in messages. The image is
/// copied.
File open_image(std::span<const std::byte> image, const std::string& label);
/// An empty file in memory, in the earliest format as h5py writes it, and its bytes once it is complete.
File create_image(const std::string& label);
std::vector<std::byte> image_of(const File& file);

/// The name under which the file of this object was opened.
std::string file_name(hid_t object);

enum class Kind : std::uint8_t { group, dataset, other };
struct Entry {
  std::string name;
  Kind kind = Kind::other;
  haddr_t address = 0;  ///< in the file: equal for two links to one object
};
/// What a group holds, by name. Soft, external and user-defined links are refused: following them could leave
/// the file.
std::vector<Entry> entries(hid_t group);

/// Walks a path link by link, each of which must be hard.
Group open_group(hid_t parent, const std::string& path);
/// Like open_group, for a dataset. Refuses virtual datasets, external storage, and shapes that pretend to be
/// much bigger than what is stored.
Dataset open_dataset(hid_t parent, const std::string& path);
/// False if the path leads nowhere; throws if it leads over a link that isn't hard.
bool exists(hid_t parent, const std::string& path);

struct DatasetInfo {
  Shape shape;
  /// NumPy's name ("float32", "int64", "uint8", "bool"), "bfloat16" as Keras marks it, else what it is
  /// ("string").
  std::string dtype;
  std::size_t element_bytes = 0;
  std::size_t stored_bytes = 0;  ///< 0 when nothing was ever written
};
DatasetInfo info_of(const Dataset& dataset);
/// "int8", …, "uint64", "float16", "float32", "float64" or "bool": HDF5 turns it into numbers by itself.
bool is_number(const DatasetInfo& info);

bool has_attribute(hid_t object, const std::string& name);
/// A text attribute, of fixed or variable length; nothing when there is none of this name or it isn't text.
std::optional<std::string> string_attribute(hid_t object, const std::string& name);

/// The type that a tensor's elements have in memory.
hid_t memory_type(DType dtype);
/// Reads the whole dataset. Its shape must be the tensor's; numbers are converted to the tensor's dtype.
void read_all(const Dataset& dataset, Tensor out);
/// Reads the elements as they are stored (for types that HDF5 doesn't know); `out` has all their bytes.
void read_raw(const Dataset& dataset, std::span<std::byte> out);
/// Reads rows [first, first + out.shape[0]) of the first dimension.
void read_rows(const Dataset& dataset, std::int64_t first, Tensor out);

}  // namespace rankine::hdf5
