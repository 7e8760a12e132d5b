#pragma once

#include <memory>
#include <string>

#include "runtime/data/dataset.hpp"

namespace rankine {

/// HDF5 with /inputs/<name> and /targets/<name>, first axis = samples; names as in the request ("x" and "y"
/// also serve when there is one). A sample's shape may differ from the request by a trailing 1. Converted
/// are floats of any width to floats (a finite value that would become infinite is refused when it is read),
/// and integers to int32 or floats where every value read is kept exactly. Missing names, other shapes and
/// dtypes, sample counts that differ, zero samples, links to other places and virtual datasets throw
/// DataError. /sample_weights, an array for all outputs or a group with one an output, is optional; each
/// holds a weight a sample or one an entry of the loss. Arrays that the model doesn't use are named in
/// description().
std::unique_ptr<Dataset> open_hdf5_dataset(const std::string& path, const DataRequest& request);

}  // namespace rankine
