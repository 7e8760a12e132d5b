// A training step of a GPT (vocabulary 4096, sequence 256, width 256, 4 blocks, 4 heads, batch 8, Adam,
// float32; 58 GFLOP) against dnnl_sgemm of 2048 x 2048 x 2048 with the same threads. After every step each
// rank times one sgemm, so both see the same machine.
//   [mpirun -n RANKS] gpt-step-benchmark [STEPS] [THREADS]

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "examples/gpt_model.hpp"
#include "optimizer/make_optimizer.hpp"
#include "runtime/arithmetic/random.hpp"
#include "runtime/mesh/agree.hpp"
#include "runtime/mesh/world.hpp"
#include "runtime/training/trainer.hpp"

using namespace rankine;

namespace {

constexpr GptShape k_shape{.vocabulary = 4096, .length = 256, .width = 256, .blocks = 4, .heads = 4};
constexpr std::int64_t k_batch = 8;

/// Six operations a weight and token in matrix products (forward, two products backward), and attention in
/// full.
double step_operations() {
  const double d = k_shape.width;
  const double weights =
      static_cast<double>(k_shape.blocks) * 12 * d * d + d * static_cast<double>(k_shape.vocabulary);
  const double attention = 12.0 * static_cast<double>(k_shape.blocks * k_shape.length) * d;
  return (6 * weights + attention) * static_cast<double>(k_batch * k_shape.length);
}

/// Random tokens.
class RandomTokens : public Dataset {
 public:
  explicit RandomTokens(DataRequest request) : request_(std::move(request)) {}
  std::int64_t samples() const override { return k_batch; }
  const std::vector<Field>& inputs() const override { return request_.inputs; }
  const std::vector<Field>& targets() const override { return request_.targets; }
  void read(std::span<const std::int64_t> indices, std::span<const Tensor> into) override {
    for (std::size_t field = 0; field < into.size(); ++field) {
      const auto ids = into[field].span<std::int32_t>();
      const auto length = static_cast<std::uint32_t>(k_shape.length);
      for (std::uint32_t i = 0; i < ids.size(); ++i) {
        const auto sample = static_cast<std::uint32_t>(indices[i / length]);
        const bool positions = field == 1;
        ids[i] = static_cast<std::int32_t>(positions ? i % length
                                                     : philox(field, {i % length, sample, 0, 0})[0] %
                                                           static_cast<std::uint32_t>(k_shape.vocabulary));
      }
    }
  }
  std::int64_t bytes_read() const override { return 0; }
  std::string description() const override { return "random tokens"; }

 private:
  DataRequest request_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[values.size() / 2];
}

/// Times one sgemm after each step, and keeps both times.
class AgainstSgemm : public Callback {
 public:
  AgainstSgemm() : a_(k_n * k_n, 1.0F), b_(k_n * k_n, 1.0F), c_(k_n * k_n) {}
  void on_step_end(const StepReport& report, bool&) override {
    const auto begin = std::chrono::steady_clock::now();
    dnnl_sgemm('N', 'N', k_n, k_n, k_n, 1.0F, a_.data(), k_n, b_.data(), k_n, 0.0F, c_.data(), k_n);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (report.step <= 2) return;  // memory and code are warm after two steps
    steps_.push_back(report.seconds);
    products_.push_back(seconds);
  }
  double step_seconds() const { return median(steps_); }
  double product_rate() const { return 2.0 * k_n * k_n * k_n / median(products_); }

 private:
  static constexpr dnnl_dim_t k_n = 2048;
  std::vector<float> a_, b_, c_;
  std::vector<double> steps_, products_;
};

int measure(World& world, std::int64_t steps, int threads) {
  omp_set_num_threads(threads);
  Model model = make_gpt(k_shape);
  model.set_compile_config(
      R"({"optimizer": "adam", "loss": {"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": true}}})");
  const auto backend = make_cpu_backend(threads, best_instruction_set());
  model.allocate(*backend);
  model.initialize(1);
  auto losses = compiled_losses(model);
  auto tokens = std::make_unique<RandomTokens>(data_request(model, losses));
  const auto optimizer = make_optimizer(model.compile_config());
  TrainOptions options;
  options.batch = k_batch;
  options.steps = steps;
  Trainer trainer(model, *backend, world.communicator(), *optimizer, std::move(losses), std::move(tokens),
                  nullptr, options);
  AgainstSgemm timer;
  Callback* callbacks[] = {&timer};
  trainer.run(callbacks);
  if (world.rank() == 0) {
    const double rate = step_operations() / timer.step_seconds();
    const double sgemm = timer.product_rate() * world.size();
    std::printf(
        "%s, %d ranks: step %.1f ms, %.1f GFLOP/s; dnnl_sgemm 2048 on as many ranks %.1f GFLOP/s; ratio "
        "%.3f\n",
        backend->description().c_str(), world.size(), 1e3 * timer.step_seconds(), 1e-9 * rate, 1e-9 * sgemm,
        rate / sgemm);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  World world(&argc, &argv);
  return run_ranks(world, [&] {
    return measure(world, argc > 1 ? std::atol(argv[1]) : 20, argc > 2 ? std::atoi(argv[2]) : 1);
  });
}
