// Predictions and evaluations of whole datasets: the same bits on any number of ranks, and what their
// definitions say.
#include "runtime/training/prediction.hpp"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/keras_model.hpp"
#include "checkpoint/weights_reader.hpp"
#include "runtime/data/hdf5_dataset.hpp"
#include "runtime/mesh/self_communicator.hpp"
#include "runtime/training/evaluation.hpp"
#include "runtime/training/trainer.hpp"
#include "test/launched.hpp"
#include "test/training/fixture_run.hpp"

using namespace rankine;
using namespace rankine::testing;

namespace {

/// A golden model with its final weights and all of its data.
struct Trained {
  std::unique_ptr<Backend> backend = make_cpu_backend(1, best_instruction_set());
  Model model;
  std::vector<OutputLoss> losses;
  std::unique_ptr<Dataset> dataset;

  explicit Trained(const std::string& fixture)
      : model(load_model(golden(fixture + "/model.keras")).model), losses(compiled_losses(model)) {
    model.allocate(*backend);
    read_weights(WeightsFile::open(golden(fixture + "/final.weights.h5")), model.variables());
    dataset = open_hdf5_dataset(golden(fixture + "/data.h5"), data_request(model, losses));
  }
  BatchPasses passes(Communicator& group, std::int64_t batch, int accumulate) const {
    return {group, samples_per_leaf(batch, model.rows_per_sample()), accumulate};
  }
  std::unique_ptr<Executor> executor(const BatchPasses& passes, std::int64_t batch) const {
    const std::int64_t most = std::max<std::int64_t>(passes.largest_pass(dataset->samples(), batch), 1);
    return std::make_unique<Executor>(model, *backend, losses, most, false);
  }
};

/// The elements of all outputs, one output after another.
std::vector<std::vector<float>> predictions(const Trained& trained, Communicator& group, std::int64_t batch,
                                            int accumulate) {
  const BatchPasses passes = trained.passes(group, batch, accumulate);
  const auto executor = trained.executor(passes, batch);
  std::vector<std::vector<float>> all(trained.model.output_specs().size());
  std::int64_t next = 0;
  predict(*executor, trained.model, *trained.backend, passes, *trained.dataset, batch,
          [&](std::int64_t first, std::span<const Tensor> outputs) {
            if (first != next) throw std::logic_error("batches come out of order");
            next += outputs[0].shape[0];
            for (std::size_t o = 0; o < all.size(); ++o) {
              const auto values = outputs[o].span<float>();
              all[o].insert(all[o].end(), values.begin(), values.end());
            }
          });
  return all;
}

}  // namespace

TEST_CASE("predictions are in order and the same on 1 to 8 ranks", "[predict]") {
  for (const char* fixture : {"tiny_gpt", "two_outputs"}) {
    const Trained trained(fixture);
    SelfCommunicator alone("one rank");
    constexpr std::int64_t k_batch = 13;  // leaves a short last batch
    const auto expected = predictions(trained, alone, k_batch, 1);
    const auto first_batch = predict_fixture(fixture, "final");  // test_keras.cpp compares it with Keras
    for (std::size_t o = 0; o < expected.size(); ++o) {
      REQUIRE(expected[o].size() > first_batch[o].size());
      CHECK(std::equal(first_batch[o].begin(), first_batch[o].end(), expected[o].begin()));
    }
    test::for_groups(1, 8, [&](Communicator& group) {
      INFO(fixture << " on " << group.size() << " ranks");
      REQUIRE_ON_ALL_RANKS(group, predictions(trained, group, k_batch, 1) == expected);
      REQUIRE_ON_ALL_RANKS(group, predictions(trained, group, 5, 3) == expected);
    });
  }
}

TEST_CASE("an evaluation is the mean over all samples on 1 to 8 ranks", "[evaluate]") {
  const Trained trained("mlp_sgd");
  SelfCommunicator alone("one rank");
  const std::vector<float> logits = predictions(trained, alone, 16, 1)[0];
  const std::int64_t samples = trained.dataset->samples(), classes = trained.model.output_specs()[0].shape[0];
  std::vector<std::int32_t> labels(static_cast<std::size_t>(samples));
  std::vector<float> unused(static_cast<std::size_t>(samples * trained.dataset->inputs()[0].spec.shape[0]));
  std::vector<std::int64_t> indices(labels.size());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  const Tensor into[] = {
      {unused.data(), DType::float32, trained.dataset->inputs()[0].spec.shape.with_leading(samples)},
      {labels.data(), DType::int32, {samples}}};
  trained.dataset->read(indices, into);

  // -log softmax at the label, in double.
  double sum = 0.0;
  for (std::int64_t s = 0; s < samples; ++s) {
    const float* row = logits.data() + s * classes;
    double total = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) total += std::exp(static_cast<double>(row[c]));
    sum += std::log(total) - static_cast<double>(row[labels[static_cast<std::size_t>(s)]]);
  }
  const double expected = sum / static_cast<double>(samples);
  std::optional<double> first;
  test::for_groups(1, 8, [&](Communicator& group) {
    const BatchPasses passes = trained.passes(group, 7, 2);
    const auto executor = trained.executor(passes, 7);
    const auto values = evaluate(*executor, passes, *trained.dataset, 7).values(trained.losses);
    const double loss = values.at("loss");
    if (!first) first = loss;
    // Float32 logits: one rounding of exp and log each, and of the difference.
    REQUIRE_ON_ALL_RANKS(group, std::abs(loss - expected) < 1e-6 * expected);
    REQUIRE_ON_ALL_RANKS(group, loss == *first);
  });
}

TEST_CASE("an evaluation gives what Keras's evaluate gives", "[evaluate]") {
  for (const std::string fixture :
       {"two_outputs", "masked", "regularized", "weighted", "ignored", "batch_norm"}) {
    std::ifstream file(golden(fixture + "/expected.json"));
    const auto expected = nlohmann::json::parse(file);
    const auto batch = expected["batch"].get<std::int64_t>();
    const Trained trained(fixture);
    const BatchPasses passes = trained.passes(test::group(), batch, 1);
    const auto executor = trained.executor(passes, batch);
    const auto values = evaluate(*executor, passes, *trained.dataset, batch).values(trained.losses);
    for (const auto& [name, value] : expected["evaluate_final"].items()) {
      INFO(fixture << " " << name);
      REQUIRE(values.count(name) == 1);
      // Keras adds up in float32: a few roundings of 6e-8.
      CHECK(std::abs(values.at(name) - value.get<double>()) <= 1e-6 * std::abs(value.get<double>()));
    }
  }
}
