#pragma once

#include <functional>

#include "runtime/training/batch_passes.hpp"

namespace rankine {

/// Outputs of one global batch: `outputs` has one tensor a model output with the rows of all ranks, which are
/// samples first, first + 1, … of the dataset.
using PredictionSink = std::function<void(std::int64_t first, std::span<const Tensor> outputs)>;

/// Runs a model forward over a whole dataset, `batch` samples at a time in their order, and gathers every
/// batch's outputs on all ranks. `sink` is called after each batch, on every rank; what it throws is agreed.
/// Collective over passes.data().
void predict(Executor& executor, const Model& model, Backend& backend, const BatchPasses& passes,
             Dataset& dataset, std::int64_t batch, const PredictionSink& sink);

}  // namespace rankine
