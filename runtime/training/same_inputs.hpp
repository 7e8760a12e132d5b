#pragma once

#include "runtime/data/dataset.hpp"
#include "runtime/mesh/communicator.hpp"
#include "runtime/model/model.hpp"

namespace rankine {

/// Throws ConfigError on all ranks when the model's weights or a dataset aren't the same on every rank of
/// `ranks`: files of one name can differ between nodes. Of a dataset the number of samples is compared, and
/// the first, middle and last one. Absent datasets are null on all ranks. Collective.
void check_same_inputs(Communicator& ranks, const Model& model, std::span<Dataset* const> datasets);

}  // namespace rankine
