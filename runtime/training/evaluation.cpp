#include "runtime/training/evaluation.hpp"

#include "runtime/mesh/agree.hpp"

namespace rankine {

void Totals::add(std::span<const OutputLoss> losses, std::span<const ValueSpec> predictions,
                 const StepSums& sums, std::int64_t samples) {
  losses_.resize(losses.size());
  metrics_.resize(sums.hits().size());
  penalty_.sum += sums.penalty() * static_cast<double>(samples);
  penalty_.divisor += static_cast<double>(samples);
  std::size_t metric = 0;
  for (std::size_t o = 0; o < losses.size(); ++o) {
    const bool is_masked = sums.masked()[o];
    const auto entries = sums.entries()[o];
    Fraction& loss = losses_[o];
    if (is_masked || losses[o].loss->sums()) {
      loss.sum += sums.losses()[o] / losses[o].divisor(entries) * static_cast<double>(samples);
      loss.divisor += static_cast<double>(samples);
    } else {
      loss.sum += sums.losses()[o];
      loss.divisor += static_cast<double>(entries);
    }
    for (const auto& m : losses[o].metrics) {
      // Of a masked output only `entries` rows count.
      const std::int64_t total = is_masked ? entries * (m->total(predictions[o], 1) / predictions[o].rows())
                                           : m->total(predictions[o], samples);
      metrics_[metric].sum += static_cast<double>(sums.hits()[metric]);
      metrics_[metric++].divisor += static_cast<double>(total);
    }
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
    for (const auto& m : losses[o].metrics)
      values[output + std::string(m->name())] = value_of(metrics_[metric++]);
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
    totals.add(executor.losses(), executor.predictions(),
               passes.run(plan, memory.batch, 0, executor, {run, {}}), samples);
  }
  return totals;
}

}  // namespace rankine
