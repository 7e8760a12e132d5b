#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>

#include "runtime/error.hpp"
#include "runtime/handle.hpp"

namespace rankine::hdf5 {

/// An HDF5 file, or something in it, is refused or can't be read. The checkpoint room turns it into
/// CheckpointError.
struct Hdf5Error : DataError {
  explicit Hdf5Error(const std::string& text) : DataError(text) {}
};

/// HDF5 is built without thread safety here, so whoever calls it holds a Lock; it nests. The functions and
/// handles of this folder take it themselves. It also keeps HDF5 from printing its errors, which `checked`
/// decodes.
class Lock {
 public:
  Lock();

 private:
  std::unique_lock<std::recursive_mutex> held_;
};

inline hid_t no_id() {
  return H5I_INVALID_HID;
}
void close_file(hid_t id);
void close_group(hid_t id);
void close_dataset(hid_t id);
void close_dataspace(hid_t id);
void close_datatype(hid_t id);
void close_attribute(hid_t id);
void close_property_list(hid_t id);

using File = UniqueHandle<hid_t, close_file, no_id>;
using Group = UniqueHandle<hid_t, close_group, no_id>;
using Dataset = UniqueHandle<hid_t, close_dataset, no_id>;
using Dataspace = UniqueHandle<hid_t, close_dataspace, no_id>;
using Datatype = UniqueHandle<hid_t, close_datatype, no_id>;
using Attribute = UniqueHandle<hid_t, close_attribute, no_id>;
using PropertyList = UniqueHandle<hid_t, close_property_list, no_id>;

/// The result of an HDF5 call, unless it is negative: then throws Hdf5Error "`what`: HDF5's own reason". Hold
/// a Lock over the call and this, since the next call of HDF5 clears its reasons.
hid_t checked(hid_t result, const std::string& what);

}  // namespace rankine::hdf5
