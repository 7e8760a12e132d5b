#include "runtime/hdf5/hdf5_handle.hpp"

namespace rankine::hdf5 {
namespace {

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

/// Keeps the innermost description: HDF5 lists the cause first and then every caller's view of it.
herr_t keep_first(unsigned depth, const H5E_error2_t* error, void* text) {
  if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

std::string library_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
  return reason.empty() ? "HDF5 gives no reason" : reason;
}

}  // namespace

Lock::Lock() : held_(library_mutex()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

hid_t checked(hid_t result, const std::string& what) {
  if (result < 0) throw Hdf5Error(what + ": " + library_reason());
  return result;
}

void close_file(hid_t id) {
  const Lock lock;
  H5Fclose(id);
}
void close_group(hid_t id) {
  const Lock lock;
  H5Gclose(id);
}
void close_dataset(hid_t id) {
  const Lock lock;
  H5Dclose(id);
}
void close_dataspace(hid_t id) {
  const Lock lock;
  H5Sclose(id);
}
void close_datatype(hid_t id) {
  const Lock lock;
  H5Tclose(id);
}
void close_attribute(hid_t id) {
  const Lock lock;
  H5Aclose(id);
}
void close_property_list(hid_t id) {
  const Lock lock;
  H5Pclose(id);
}

}  // namespace rankine::hdf5
