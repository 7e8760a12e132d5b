#include "runtime/training/evaluation.hpp"

#include "runtime/mesh/agree.hpp"

namespace rankine {

void Totals::add(std::span<const OutputLoss> losses, const StepSums& sums, std::int64_t samples) {
  losses_.resize(losses.size());
  penalty_.sum += sums.penalty * static_cast<double>(samples);
  penalty_.divisor += static_cast<double>(samples);
  std::size_t metrics = 0;
  for (std::size_t o = 0; o < losses.size(); ++o) {
    Fraction& loss = losses_[o];
    if (sums.varies[o] || losses[o].loss->reduction() == Reduction::sum) {
      loss.sum += sums.loss(o) / losses[o].divisor(sums.counted[o]) * static_cast<double>(samples);
      loss.divisor += static_cast<double>(samples);
    } else {
      loss.sum += sums.loss(o);
      loss.divisor += sums.counted[o];
    }
    metrics += losses[o].metrics.size();
  }
  metrics_.resize(metrics);
  for (std::size_t m = 0; m < metrics; ++m) {
    metrics_[m].sum += sums.numerator(m);
    metrics_[m].divisor += sums.denominator(m);
  }
}

std::map<std::string, double> Totals::values(std::span<const OutputLoss> losses) const {
  // As Keras does where nothing counts.
  const auto value_of = [](const Fraction& f) { return f.divisor == 0.0 ? 0.0 : f.sum / f.divisor; };
  std::map<std::string, double> values{{"loss", value_of(penalty_)}};
  const bool several = losses.size() > 1;
  std::size_t metric = 0;
  for (std::size_t o = 0; o < losses.size(); ++o) {
    const std::string output = several ? losses[o].output + "_" : "";
    const double loss = value_of(losses_[o]);
    values["loss"] += losses[o].weight * loss;
    if (several) values[output + "loss"] = loss;
    for (const LoggedMetric& logged : losses[o].metrics) values[logged.key] = value_of(metrics_[metric++]);
  }
  return values;
}

Totals evaluate(Executor& executor, const BatchPasses& passes, Dataset& dataset, std::int64_t batch) {
  Totals totals;
  BatchReader reader(dataset, SampleOrder(dataset.samples(), 0, false), batch, passes.share());
  BatchReader::Memory memory;
  for (std::int64_t step = 1; step <= reader.schedule().steps_per_epoch(); ++step) {
    agree(passes.data(), [&] { reader.read(step, memory); });
    const std::int64_t samples = memory.batch.place.samples;
    const auto run = [&](const PlannedPass&, const Pass& pass) { return executor.evaluate(pass); };
    const StepPlan plan = passes.plan(samples);
    totals.add(executor.losses(), passes.run(plan, memory.batch, 0, executor, {run, {}}), samples);
  }
  return totals;
}

}  // namespace rankine
