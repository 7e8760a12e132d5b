#pragma once

#include <string>

#include "runtime/compute/tensor.hpp"
#include "runtime/hdf5/hdf5_handle.hpp"

namespace rankine::hdf5 {

/// Writing by one process. Throws Hdf5Error with the object's path. Nothing here is collective.

/// A new file; one that has the name already is emptied.
File create_file(const std::string& path);
/// A dataset of this shape, whose values aren't written yet. The groups on its path are made as they are
/// needed. Files of equal values are equal: no times are kept.
Dataset create_dataset(hid_t parent, const std::string& path, DType dtype, const Shape& shape);
/// Makes an empty group, and those on its path as they are needed.
Group create_group(hid_t parent, const std::string& path);
void write_all(const Dataset& dataset, const Tensor& value);
/// Writes rows [first, first + rows.shape[0]) of the first dimension.
void write_rows(const Dataset& dataset, std::int64_t first, const Tensor& rows);

}  // namespace rankine::hdf5
