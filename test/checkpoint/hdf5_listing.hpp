#pragma once

#include <string>
#include <vector>

#include "runtime/hdf5/hdf5_file.hpp"

namespace rankine::test {

/// Everything of a file's structure that a reader can see, one line an object: kind, type with byte order,
/// shape, storage layout, filters, and each attribute's type and value. Values of datasets aren't in it.
std::vector<std::string> listing(const hdf5::File& file);
/// The lines that only one of two listings has, with "ours" or "theirs" in front; none for equal files.
std::vector<std::string> listing_differences(const hdf5::File& ours, const hdf5::File& theirs);

}  // namespace rankine::test
