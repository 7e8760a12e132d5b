#include <cstdio>

#include "checkpoint/atomic_file.hpp"
#include "runtime/error.hpp"
#include "runtime/hdf5/hdf5_writing.hpp"
#include "runtime/training/prediction.hpp"
#include "runtime/training/same_inputs.hpp"
#include "runtime/training/trainer.hpp"
#include "tools/rankine/agreed.hpp"
#include "tools/rankine/start.hpp"

namespace rankine {
namespace {

/// The HDF5 file of a model's outputs: whole, or not there.
class PredictionsFile {
 public:
  PredictionsFile(const std::string& path, const Model& model, std::int64_t samples)
      : file_(path), hdf5_(hdf5::create_file(file_.temporary())) {
    const std::vector<ValueSpec> specs = model.output_specs();
    for (std::size_t o = 0; o < specs.size(); ++o)
      datasets_.push_back(hdf5::create_dataset(hdf5_.get(), "outputs/" + model.output_names()[o],
                                               specs[o].dtype, specs[o].shape.with_leading(samples)));
  }
  void write(std::int64_t first, std::span<const Tensor> outputs) const {
    for (std::size_t o = 0; o < outputs.size(); ++o) hdf5::write_rows(datasets_[o], first, outputs[o]);
  }
  void commit() {
    datasets_.clear();
    hdf5_ = {};
    file_.commit();
  }

 private:
  AtomicFile file_;
  hdf5::File hdf5_;
  std::vector<hdf5::Dataset> datasets_;
};

}  // namespace

void run_predict(World& world, Arguments arguments) {
  Communicator& ranks = world.communicator();
  const bool speaks = world.rank() == 0;
  Start start = rankine::start(world, ModelCommand::predict, arguments);
  const Settings& settings = start.settings;
  const LoadedModel loaded = agreed(ranks, [&] { return load_model_of(start, ModelCommand::predict); });
  const Model& model = loaded.model;
  const Data data = agreed(ranks, [&] { return open_data(settings, data_request(model, {})); });
  Dataset& dataset = *data.training;
  Dataset* const datasets[] = {&dataset};
  check_same_inputs(start.mesh.data(), model, datasets);
  if (speaks && !settings.quiet) print_facts(facts_of(start, model, data));

  const BatchPasses passes(start.mesh.data(), samples_per_leaf(settings.batch, model.rows_per_sample()),
                           static_cast<int>(settings.accumulate));
  std::optional<PredictionsFile> file;
  const auto executor = agreed(ranks, [&] {
    if (speaks) file.emplace(settings.output, model, dataset.samples());
    const std::int64_t most =
        std::max<std::int64_t>(passes.largest_pass(dataset.samples(), settings.batch), 1);
    return std::make_unique<Executor>(model, *start.backend, std::vector<OutputLoss>(), most, false);
  });
  predict(*executor, model, *start.backend, passes, dataset, settings.batch,
          [&](std::int64_t first, std::span<const Tensor> outputs) {
            if (file) file->write(first, outputs);
          });
  agree(ranks, [&] {
    if (!file) return;
    file->commit();
    if (!settings.quiet) std::printf("wrote '%s'\n", settings.output.c_str());
  });
}

}  // namespace rankine
