/// An AdamW update, with and without clipping, beside a loop that moves the same memory and does next to
/// nothing: reads the gradient, reads and writes weight and two slots. Prints medians of interleaved runs;
/// the percentages are how much of the memory-bound limit an update reaches.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "optimizer/update.hpp"

using namespace rankine;

namespace {

constexpr std::size_t k_runs = 15;
using Values = std::vector<float>;

struct Arrays {
  explicit Arrays(std::size_t n)
      : gradient(n, 1e-3F), weight(n, 0.5F), momentum(n, 0.0F), velocity(n, 0.0F) {}
  Values gradient, weight, momentum, velocity;
};

void stream(Arrays& a) {
  const float* __restrict g = a.gradient.data();
  float* __restrict w = a.weight.data();
  float* __restrict m = a.momentum.data();
  float* __restrict v = a.velocity.data();
  const std::size_t n = a.weight.size();
  for (std::size_t i = 0; i < n; ++i) {
    const float x = g[i] * 1e-6F;
    w[i] += x;
    m[i] += x;
    v[i] += x;
  }
}

/// Of one call.
double seconds(const std::function<void()>& loop, std::size_t repeats) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < repeats; ++i) loop();
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  return all.count() / static_cast<double>(repeats);
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace

int main() {
  const auto none = nlohmann::json::object();
  ConfigReader config(none, "AdamW");
  const auto rule = find_rule("AdamW").make(config);
  rule->begin_update({1e-3F, 10});
  const VariableUpdate plain{rule.get(), 1e-3F, {}, 0.004};
  const VariableUpdate clipped{rule.get(), 1e-3F, {{ClipKind::global_norm, 1.0}, 2.0}, 0.004};
  std::vector<std::byte> scratch;
  std::printf("%10s %12s %20s %20s\n", "elements", "stream ms", "AdamW ms", "clipped ms");
  for (const std::size_t n : {std::size_t{1} << 16, std::size_t{1} << 20, std::size_t{1} << 25}) {
    Arrays a(n);
    const std::size_t repeats = (std::size_t{1} << 25) / n;
    const Elements elements{DType::float32,
                            static_cast<std::int64_t>(n),
                            a.gradient.data(),
                            a.weight.data(),
                            {a.momentum.data(), a.velocity.data()}};
    const std::function<void()> loops[]{[&] { stream(a); }, [&] { plain.apply(elements, scratch); },
                                        [&] { clipped.apply(elements, scratch); }};
    std::array<std::vector<double>, 3> times;
    for (std::size_t run = 0; run < k_runs; ++run) {
      for (std::size_t loop = 0; loop < times.size(); ++loop) {
        times[loop].push_back(seconds(loops[loop], repeats));
      }
    }
    const double limit = median(times[0]), update = median(times[1]), with_clip = median(times[2]);
    std::printf("%10zu %12.3f %13.3f (%3.0f%%) %13.3f (%3.0f%%)\n", n, limit * 1e3, update * 1e3,
                limit / update * 100, with_clip * 1e3, limit / with_clip * 100);
  }
}
