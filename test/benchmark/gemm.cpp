// Our matrix product against dnnl_sgemm, on every product of a GPT of vocabulary 4096, sequence 256, width
// 256, 4 heads, batch 8. Runs of the two alternate, and each of ours is compared with the library's before
// and after it, so that a ratio sees one state of a machine whose speed wanders. One thread is timed by its
// own processor time, several by the wall.
//   gemm-benchmark [ROUNDS]

#include <dnnl.h>
#include <omp.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "runtime/arithmetic/gemm.hpp"

using namespace rankine;

namespace {

struct Product {
  const char* name;
  bool transpose_a, transpose_b;
  std::int64_t m, k, n;
  Leaves leaves;
};

std::vector<Product> gpt_shapes() {
  constexpr std::int64_t samples = 8, length = 256, tokens = samples * length, width = 256, hidden = 1024,
                         vocabulary = 4096;
  const BatchLeaves batch{samples, samples_per_leaf(samples, length)};
  const auto features = [](std::int64_t n) { return Leaves::of(n, feature_leaf(n)); };
  const Leaves rows = batch.rows(samples, length);
  std::vector<Product> shapes;
  const auto layer = [&](const char* forward, const char* input_gradient, const char* kernel_gradient,
                         std::int64_t in, std::int64_t out) {
    shapes.push_back({forward, false, false, tokens, in, out, features(in)});
    shapes.push_back({input_gradient, false, true, tokens, out, in, features(out)});
    shapes.push_back({kernel_gradient, true, false, in, tokens, out, rows});
  };
  layer("projection", "projection dX", "projection dW", width, width);
  layer("hidden", "hidden dX", "hidden dW", width, hidden);
  layer("back", "back dX", "back dW", hidden, width);
  layer("logits", "logits dX", "logits dW", width, vocabulary);
  return shapes;
}

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// Aligned as a backend's tensors are.
float* random_matrix(AlignedBuffer& memory, std::int64_t elements) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  float* data = memory.get<float>(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i) data[i] = normal(random);
  return data;
}

/// Prints one line and returns our speed over the library's.
double compare(const Product& shape, ThreadPool& pool, GemmWorkspace& workspace, int rounds) {
  AlignedBuffer memory[3];
  const float* a = random_matrix(memory[0], shape.m * shape.k);
  const float* b = random_matrix(memory[1], shape.k * shape.n);
  float* c = random_matrix(memory[2], shape.m * shape.n);
  Gemm g;
  g.transpose_a = shape.transpose_a;
  g.transpose_b = shape.transpose_b;
  g.m = shape.m;
  g.n = shape.n;
  g.k = shape.k;
  g.a = a;
  g.lda = shape.transpose_a ? shape.m : shape.k;
  g.b = b;
  g.ldb = shape.transpose_b ? shape.k : shape.n;
  g.c = c;
  g.ldc = shape.n;
  g.k_leaves = shape.leaves;
  const auto& table = kernels<float>(best_instruction_set());
  const auto ours = [&] { gemm(table, g, pool, workspace); };
  const auto library = [&] {
    dnnl_sgemm(shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N', g.m, g.n, g.k, 1.0F, a, g.lda, b,
               g.ldb, 0.0F, c, g.ldc);
  };
  const clockid_t clock = pool.threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  const int repeats = std::max(1, static_cast<int>(2e8 / flops));  // a sample lasts at least a millisecond
  const auto time_of = [&](auto& f) {
    const double begin = seconds(clock);
    for (int i = 0; i < repeats; ++i) f();
    return (seconds(clock) - begin) / repeats;
  };
  ours();
  library();
  std::vector<double> our_times, library_times{time_of(library)}, ratios;
  for (int i = 0; i < rounds; ++i) {
    const double before = library_times.back();
    our_times.push_back(time_of(ours));
    library_times.push_back(time_of(library));
    ratios.push_back((before + library_times.back()) / 2 / our_times.back());
  }
  const double mine = median(our_times), theirs = median(library_times), ratio = median(ratios);
  std::printf("%7d  %-14s %c%c %5lld x %4lld x %4lld  leaf %3lld  %7.1f  %7.1f  %6.2f\n", pool.threads(),
              shape.name, g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', static_cast<long long>(g.m),
              static_cast<long long>(g.k), static_cast<long long>(g.n),
              static_cast<long long>(g.k_leaves.leaf), flops / mine * 1e-9, flops / theirs * 1e-9, ratio);
  std::fflush(stdout);
  return ratio;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 31;
  std::printf("%s; medians of %d alternating runs\n", std::string(name_of(best_instruction_set())).c_str(),
              rounds);
  std::printf("threads  product              M      K      N            ours  dnnl GF/s  ratio\n");
  double lowest = 1e9;
  for (const int threads : {1, 2}) {
    omp_set_num_threads(threads);
    ThreadPool pool(threads);
    GemmWorkspace workspace(threads);
    for (const Product& shape : gpt_shapes())
      lowest = std::min(lowest, compare(shape, pool, workspace, rounds));
  }
  std::printf("lowest ratio %.2f\n", lowest);
  return 0;
}
