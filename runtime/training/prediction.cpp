#include "runtime/training/prediction.hpp"

#include <algorithm>
#include <optional>

#include "runtime/mesh/agree.hpp"

namespace rankine {
namespace {

/// Memory for the outputs of one batch.
struct Outputs {
  std::vector<Buffer> buffers;
  std::vector<Tensor> tensors;

  Outputs(const Model& model, Backend& backend, std::int64_t samples) {
    for (const ValueSpec& spec : model.output_specs()) {
      tensors.push_back({nullptr, spec.dtype, spec.shape.with_leading(samples)});
      buffers.push_back(backend.allocate(tensors.back().bytes()));
      tensors.back().data = buffers.back().data();
    }
  }
  std::vector<Tensor> rows(Range range) const {
    std::vector<Tensor> part;
    for (const Tensor& tensor : tensors) part.push_back(tensor.rows(range.begin, range.end));
    return part;
  }
};

void run_passes(Executor& executor, Backend& backend, const StepPlan& plan, const Batch& batch,
                const Outputs& outputs) {
  for_each_pass(plan, batch, 0, {}, [&](const PlannedPass& planned, const Pass& pass) {
    const std::vector<Tensor> rows = outputs.rows(planned.samples);
    const std::vector<Tensor> made = executor.predict(pass.inputs, planned.samples.size());
    for (std::size_t o = 0; o < rows.size(); ++o) backend.copy(made[o], rows[o]);
  });
}

/// Every rank's samples go to all.
void gather(Communicator& data, const StepPlan& plan, const Outputs& outputs, std::int64_t samples) {
  for (const Tensor& tensor : outputs.tensors) {
    const std::int64_t row = samples == 0 ? 0 : tensor.rows(0, 1).elements();
    std::vector<Range> pieces;
    for (const Range run : plan.shares.runs) {
      const Range range = plan.batch.samples_of(run);
      pieces.push_back({range.begin * row, range.end * row});
    }
    data.all_gather(tensor.dtype, tensor.data, pieces)->wait();
  }
}

}  // namespace

void predict(Executor& executor, const Model& model, Backend& backend, const BatchPasses& passes,
             Dataset& dataset, std::int64_t batch, const PredictionSink& sink) {
  Communicator& data = passes.data();
  BatchReader reader(dataset, SampleOrder(dataset.samples(), 0, false), batch, passes.share());
  BatchReader::Memory memory;
  std::optional<Outputs> outputs;
  agree(data, [&] { outputs.emplace(model, backend, std::min(batch, dataset.samples())); });
  std::int64_t first = 0;
  for (std::int64_t step = 1; step <= reader.schedule().steps_per_epoch(); ++step) {
    agree(data, [&] { reader.read(step, memory); });
    const std::int64_t samples = memory.batch.place.samples;
    const StepPlan plan = passes.plan(samples);
    agree(data, [&] { run_passes(executor, backend, plan, memory.batch, *outputs); });
    gather(data, plan, *outputs, samples);
    const std::vector<Tensor> whole = outputs->rows({0, samples});
    agree(data, [&] { sink(first, whole); });
    first += samples;
  }
}

}  // namespace rankine
