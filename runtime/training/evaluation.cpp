#include "runtime/training/evaluation.hpp"

#include "runtime/mesh/agree.hpp"

namespace rankine {

void Totals::add(std::span<const OutputLoss> losses, const StepSums& sums, std::int64_t samples) {
  losses_.resize(sums.losses().size(), 0.0);
  hits_.resize(sums.hits().size(), 0);
  for (std::size_t i = 0; i < losses_.size(); ++i)
    losses_[i] += losses[i].loss->sums() ? sums.losses()[i] * static_cast<double>(samples) : sums.losses()[i];
  for (std::size_t i = 0; i < hits_.size(); ++i) hits_[i] += sums.hits()[i];
  samples_ += samples;
}

std::map<std::string, double> Totals::values(std::span<const OutputLoss> losses,
                                             std::span<const ValueSpec> predictions) const {
  const auto mean = [&](std::size_t o) {
    const double divisor =
        losses[o].loss->sums() ? static_cast<double>(samples_) : losses[o].divisor(predictions[o], samples_);
    return losses_[o] / divisor;
  };
  std::map<std::string, double> values{{"loss", 0.0}};
  const bool several = losses.size() > 1;
  std::size_t metric = 0;
  for (std::size_t o = 0; o < losses.size(); ++o) {
    const std::string output = several ? losses[o].output + "_" : "";
    values["loss"] += losses[o].weight * mean(o);
    if (several) values[output + "loss"] = mean(o);
    for (const auto& m : losses[o].metrics) {
      const auto hits = static_cast<double>(hits_[metric++]);
      values[output + std::string(m->name())] =
          hits / static_cast<double>(m->total(predictions[o], samples_));
    }
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
    totals.add(executor.losses(),
               passes.run(passes.plan(samples), memory.batch, 0, executor.losses(), {run, {}}), samples);
  }
  return totals;
}

}  // namespace rankine
