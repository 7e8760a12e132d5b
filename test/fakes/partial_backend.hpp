#pragma once

#include <stdexcept>

#include "runtime/compute/backend.hpp"

namespace rankine::test {

/// A backend that can't do anything yet: tests override what they need.
class PartialBackend : public Backend {
 public:
  std::string description() const override { refuse(); }
  Buffer allocate(std::size_t) override { refuse(); }
  void synchronize() override { refuse(); }
  void fill(Tensor, double) override { refuse(); }
  void copy(Tensor, Tensor) override { refuse(); }
  void copy_block(DType, std::int64_t, std::int64_t, const void*, std::int64_t, void*,
                  std::int64_t) override {
    refuse();
  }
  void permute(Tensor, std::span<const int>, Tensor) override { refuse(); }
  void add(Tensor, Tensor, Tensor) override { refuse(); }
  void multiply(Tensor, Tensor, Tensor) override { refuse(); }
  void scale(Tensor, double, Tensor) override { refuse(); }
  void extremum(Extremum, Tensor, Tensor, Tensor) override { refuse(); }
  void extremum_gradient(Extremum, Tensor, Tensor, Tensor, Tensor) override { refuse(); }
  void add_bias(Tensor, Tensor, Tensor) override { refuse(); }
  void affine_columns(Tensor, Tensor, Tensor, Tensor, Tensor) override { refuse(); }
  void activation(const ActivationFunction&, Tensor, Tensor) override { refuse(); }
  void activation_gradient(const ActivationFunction&, Tensor, Tensor, Tensor) override { refuse(); }
  void dropout(const DropoutMask&, Tensor, Tensor) override { refuse(); }
  void gemm(const Gemm&) override { refuse(); }
  void attention(const Attention&) override { refuse(); }
  void attention_gradient(const Attention&, const AttentionGradient&) override { refuse(); }
  void column_sum(Tensor, const Leaves&, Tensor) override { refuse(); }
  void column_dot(Tensor, Tensor, const Leaves&, Tensor) override { refuse(); }
  void scatter_add(Tensor, Tensor, const Leaves&, Tensor) override { refuse(); }
  double sum(Tensor, const Leaves&) override { refuse(); }
  void gather(Tensor, Tensor, Tensor) override { refuse(); }
  void softmax(Tensor, bool, Tensor) override { refuse(); }
  void softmax_gradient(Tensor, bool, Tensor, Tensor) override { refuse(); }
  void layer_norm(Tensor, Tensor, Tensor, double, Tensor, Tensor) override { refuse(); }
  void layer_norm_gradient(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor) override { refuse(); }
  void rms_norm(Tensor, Tensor, double, bool, Tensor, Tensor) override { refuse(); }
  void rms_norm_gradient(Tensor, Tensor, Tensor, bool, Tensor, Tensor, Tensor) override { refuse(); }
  void mean_middle(Tensor, Tensor, Tensor) override { refuse(); }
  void mean_middle_gradient(Tensor, Tensor, Tensor) override { refuse(); }
  void keep(Tensor, Tensor, Tensor) override { refuse(); }
  void not_equal(Tensor, std::int32_t, Tensor) override { refuse(); }
  void either(Tensor, Tensor, Tensor) override { refuse(); }
  std::int64_t count_set(Tensor) override { refuse(); }
  void clear_rows(Tensor, Tensor) override { refuse(); }
  void scale_rows(Tensor, Tensor) override { refuse(); }
  void sparse_cross_entropy(Tensor, Tensor, bool, double, Tensor, Tensor) override { refuse(); }
  void categorical_cross_entropy(Tensor, Tensor, bool, double, double, Tensor, Tensor) override { refuse(); }
  void binary_cross_entropy(Tensor, Tensor, bool, double, double, Tensor, Tensor) override { refuse(); }
  void mean_squared_error(Tensor, Tensor, double, Tensor, Tensor) override { refuse(); }
  void mean_absolute_error(Tensor, Tensor, double, Tensor, Tensor) override { refuse(); }
  void huber(Tensor, Tensor, double, double, Tensor, Tensor) override { refuse(); }
  void sparse_hits(Tensor, Tensor, Tensor) override { refuse(); }
  void categorical_hits(Tensor, Tensor, Tensor) override { refuse(); }
  void binary_hits(Tensor, Tensor, double, Tensor) override { refuse(); }
  void sparse_top_k_hits(Tensor, Tensor, std::int64_t, Tensor) override { refuse(); }
  void categorical_top_k_hits(Tensor, Tensor, std::int64_t, Tensor) override { refuse(); }
  void count_positives(Tensor, Tensor, double, Tensor, Tensor, Tensor) override { refuse(); }
  std::int64_t find_non_finite(Tensor) override { refuse(); }
  double sum_of_squares(Tensor) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("this test's backend lacks what was called"); }
};

}  // namespace rankine::test
