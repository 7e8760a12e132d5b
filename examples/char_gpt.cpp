// Trains a small character-level GPT on a text and lets it write. The model and the sampling loop stand here;
// training is the library's. Run by tools/quickstart:
//   mpirun -n 2 char_gpt TEXT [STEPS]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "examples/gpt_model.hpp"
#include "optimizer/make_optimizer.hpp"
#include "runtime/arithmetic/random.hpp"
#include "runtime/data/bigram_entropy.hpp"
#include "runtime/data/window_dataset.hpp"
#include "runtime/error.hpp"
#include "runtime/mesh/agree.hpp"
#include "runtime/mesh/world.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/progress.hpp"
#include "runtime/training/trainer.hpp"

using namespace rankine;

namespace {

constexpr std::uint64_t k_seed = 1;
constexpr std::int64_t k_batch = 16;

/// Keras's words, as in the compile config of a `.keras` file.
std::string compile_config(std::int64_t steps) {
  return nlohmann::json{{"optimizer",
                         {{"module", "keras.optimizers"},
                          {"class_name", "AdamW"},
                          {"registered_name", nullptr},
                          {"config",
                           {{"learning_rate",
                             {{"module", "keras.optimizers.schedules"},
                              {"class_name", "CosineDecay"},
                              {"registered_name", nullptr},
                              {"config",
                               {{"initial_learning_rate", 0.0},
                                {"decay_steps", steps},
                                {"alpha", 0.1},
                                {"warmup_target", 3e-3},
                                {"warmup_steps", steps / 20 + 1}}}}},
                            {"weight_decay", 0.01},
                            {"global_clipnorm", 1.0}}}}},
                        {"loss",
                         {{"module", "keras.losses"},
                          {"class_name", "SparseCategoricalCrossentropy"},
                          {"registered_name", nullptr},
                          {"config", {{"from_logits", true}}}}},
                        {"metrics", {"accuracy"}}}
      .dump();
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError("can't read the text " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Remembers the mean loss of the newest steps.
class NewestLoss : public Callback {
 public:
  void on_step_end(const StepReport& report, bool&) override {
    mean_ = report.step == 1 ? report.loss : 0.95 * mean_ + 0.05 * report.loss;
  }
  double mean() const { return mean_; }

 private:
  double mean_ = 0.0;
};

/// Draws one id from softmax(logits / temperature).
int draw(std::span<const float> logits, double temperature, std::uint32_t place) {
  const float top = *std::max_element(logits.begin(), logits.end());
  std::vector<double> weights;
  double total = 0.0;
  for (const float logit : logits) total += weights.emplace_back(std::exp((logit - top) / temperature));
  double left = uniform_float(philox(k_seed, {place, 0, 0, 0})[0]) * total;
  for (std::size_t id = 0; id < weights.size(); ++id) {
    left -= weights[id];
    if (left < 0) return static_cast<int>(id);
  }
  return static_cast<int>(weights.size()) - 1;
}

/// Goes on from `prompt` one character at a time: the model sees the newest `length` characters.
std::string write_on(const Model& model, Backend& backend, const GptShape& shape,
                     const std::string& vocabulary, std::string text, int characters) {
  Executor executor(model, backend, {}, 1, false);
  const auto length = static_cast<std::size_t>(shape.length);
  std::vector<std::int32_t> tokens(length), positions(length);
  const Shape row{1, shape.length};
  const Tensor inputs[] = {{tokens.data(), DType::int32, row}, {positions.data(), DType::int32, row}};
  for (std::size_t i = 0; i < length; ++i) positions[i] = static_cast<std::int32_t>(i);
  for (int n = 0; n < characters; ++n) {
    const std::string window = text.substr(text.size() - std::min(text.size(), length));
    std::fill(tokens.begin(), tokens.end(), 0);  // places after the text don't matter: attention is causal
    for (std::size_t i = 0; i < window.size(); ++i) {
      tokens[i] = static_cast<std::int32_t>(
          std::lower_bound(vocabulary.begin(), vocabulary.end(), window[i]) - vocabulary.begin());
    }
    const Tensor logits = executor.predict(inputs, 1)[0];
    const auto at = (window.size() - 1) * vocabulary.size();
    text += vocabulary[static_cast<std::size_t>(
        draw(logits.span<float>().subspan(at, vocabulary.size()), 0.7, static_cast<std::uint32_t>(n)))];
  }
  return text;
}

int train_and_write(World& world, const std::string& path, std::int64_t steps) {
  const bool speaks = world.rank() == 0;
  const std::string vocabulary = text_vocabulary(path);
  GptShape shape;
  shape.vocabulary = static_cast<std::int64_t>(vocabulary.size());
  Model model = make_gpt(shape);
  model.set_compile_config(compile_config(steps));
  const auto backend = make_cpu_backend(1, best_instruction_set());
  model.allocate(*backend);
  model.initialize(k_seed);

  auto losses = compiled_losses(model);
  auto dataset =
      open_text_dataset(path, vocabulary, data_request(model, losses), {.positions = {"positions"}});
  const auto optimizer = make_optimizer(model.compile_config());
  TrainOptions options;
  options.batch = k_batch;
  options.steps = steps;
  options.seed = k_seed;
  const double bigrams = bigram_entropy(read_text(path));
  if (speaks) {
    std::printf(
        "%s: %lld windows of %lld characters, %zu different ones; a model of character pairs has loss %.3f\n",
        path.c_str(), static_cast<long long>(dataset->samples()), static_cast<long long>(shape.length),
        vocabulary.size(), bigrams);
  }
  Trainer trainer(model, *backend, world.communicator(), *optimizer, std::move(losses), std::move(dataset),
                  nullptr, options);
  Progress progress(trainer.steps_planned());
  NewestLoss loss;
  std::vector<Callback*> callbacks{&loss};
  if (speaks) callbacks.push_back(&progress);
  trainer.run(callbacks);

  if (speaks) {
    std::printf("loss %.3f, %s that of character pairs, %.3f\n\n%s\n", loss.mean(),
                loss.mean() < bigrams ? "below" : "not below", bigrams,
                write_on(model, *backend, shape, vocabulary, "This License", 400).c_str());
  }
  return loss.mean() < bigrams ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  World world(&argc, &argv);
  return run_ranks(world, [&] {
    if (argc < 2) throw UsageError("usage: mpirun -n 2 char_gpt TEXT [STEPS]");
    return train_and_write(world, argv[1], argc > 2 ? std::stol(argv[2]) : 800);
  });
}
