#include "runtime/training/batch_passes.hpp"

#include <algorithm>
#include <exception>

#include "runtime/mesh/agree.hpp"

namespace rankine {
namespace {

std::vector<Tensor> rows_of(std::span<const Tensor> tensors, Range rows) {
  std::vector<Tensor> part;
  for (const Tensor& tensor : tensors) part.push_back(tensor.rows(rows.begin, rows.end));
  return part;
}

std::size_t metric_count(std::span<const OutputLoss> losses) {
  std::size_t count = 0;
  for (const OutputLoss& loss : losses) count += loss.metrics.size();
  return count;
}

}  // namespace

void for_each_pass(const StepPlan& plan, const Batch& batch, std::uint64_t seed,
                   std::span<const double> counted,
                   const std::function<void(const PlannedPass& planned, const Pass& pass)>& visit) {
  const std::int64_t first = plan.samples().begin;
  for (const PlannedPass& planned : plan.passes) {
    const Range rows{planned.samples.begin - first, planned.samples.end - first};
    const std::vector<Tensor> inputs = rows_of(batch.inputs, rows), targets = rows_of(batch.targets, rows);
    const std::vector<Tensor> weights = rows_of(batch.weights, rows);
    visit(planned, Pass{batch.step, seed, plan.batch, planned.samples, inputs, targets, weights, counted});
  }
}

StepPlan BatchPasses::plan(std::int64_t samples) const {
  return plan_step(samples, samples_per_leaf_, data_.size(), data_.rank(), accumulate_);
}

BatchShare BatchPasses::share() const {
  return [this](std::int64_t samples) { return std::vector<Range>{plan(samples).samples()}; };
}

std::int64_t BatchPasses::largest_pass(std::int64_t samples, std::int64_t batch) const {
  const std::int64_t rest = samples % batch;
  const std::int64_t whole = samples >= batch ? plan(batch).largest_pass() : 0;
  return std::max(whole, rest > 0 ? plan(rest).largest_pass() : 0);
}

std::size_t BatchPasses::most_passes(std::int64_t samples, std::int64_t batch) const {
  const std::int64_t rest = samples % batch;
  const std::size_t whole = samples >= batch ? plan(batch).passes.size() : 0;
  return std::max(whole, rest > 0 ? plan(rest).passes.size() : 0);
}

std::vector<double> BatchPasses::count_entries(const StepPlan& plan, const Batch& batch,
                                               Executor& executor) const {
  const std::vector<bool> varies = executor.counts_vary(!batch.weights.empty());
  if (std::none_of(varies.begin(), varies.end(), [](bool v) { return v; }))
    return executor.entries(plan.batch.samples);
  TreeSums counted(plan, varies.size());
  for_each_pass(plan, batch, 0, {}, [&](const PlannedPass& planned, const Pass& pass) {
    counted.add(planned, executor.count_entries(pass));
  });
  return counted.reduce(data_);
}

StepSums BatchPasses::begin(const StepPlan& plan, const Batch& batch, Executor& executor) const {
  return {{},
          count_entries(plan, batch, executor),
          executor.counts_vary(!batch.weights.empty()),
          executor.penalty()};
}

StepSums BatchPasses::run(const StepPlan& plan, const Batch& batch, std::uint64_t seed, Executor& executor,
                          const Work& work) const {
  StepSums result = begin(plan, batch, executor);
  TreeSums sums(plan, result.counted.size() + 2 * metric_count(executor.losses()));
  std::exception_ptr failure;
  for_each_pass(plan, batch, seed, result.counted, [&](const PlannedPass& planned, const Pass& pass) {
    if (failure) {
      if (work.skip) work.skip(planned);
      return;
    }
    try {
      sums.add(planned, work.run(planned, pass));
    } catch (...) {
      failure = std::current_exception();
    }
  });
  agree(data_, [&] {
    if (failure) std::rethrow_exception(failure);
  });
  result.sums = sums.reduce(data_);
  return result;
}

StepSums BatchPasses::train_together(const StepPlan& plan, const Batch& batch, std::uint64_t seed,
                                     Executor& executor, Optimizer& optimizer) const {
  StepSums result = begin(plan, batch, executor);
  TreeSums sums(plan, result.counted.size() + 2 * metric_count(executor.losses()));
  const std::int64_t first = plan.samples().begin;
  std::vector<std::vector<Tensor>> inputs, targets, weights;
  std::vector<Pass> passes;
  for (const PlannedPass& planned : plan.passes) {
    const Range rows{planned.samples.begin - first, planned.samples.end - first};
    inputs.push_back(rows_of(batch.inputs, rows));
    targets.push_back(rows_of(batch.targets, rows));
    weights.push_back(rows_of(batch.weights, rows));
    passes.push_back({batch.step, seed, plan.batch, planned.samples, inputs.back(), targets.back(),
                      weights.back(), result.counted});
  }
  std::exception_ptr failure;
  try {
    std::vector<PassSums> made = executor.train_together(plan, passes, data_, optimizer);
    for (std::size_t p = 0; p < made.size(); ++p) sums.add(plan.passes[p], std::move(made[p]));
  } catch (...) {
    failure = std::current_exception();
  }
  agree(data_, [&] {
    if (failure) std::rethrow_exception(failure);
  });
  result.sums = sums.reduce(data_);
  return result;
}

}  // namespace rankine
