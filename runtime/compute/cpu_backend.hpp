#pragma once

#include <algorithm>
#include <vector>

#include "runtime/arithmetic/attention.hpp"
#include "runtime/arithmetic/gemm.hpp"
#include "runtime/arithmetic/kernel_table.hpp"
#include "runtime/arithmetic/thread_pool.hpp"
#include "runtime/compute/backend.hpp"

namespace rankine {

/// The backend on the host's processor: checks arguments, cuts the work into items whose results don't depend
/// on who computes them, and calls the kernels of one instruction set. Calls are finished when they return.
/// Wrong use (dtypes or shapes that don't fit) throws std::logic_error.
class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, InstructionSet instructions);

  std::string description() const override;
  Buffer allocate(std::size_t bytes) override;
  void synchronize() override {}

  void fill(Tensor x, double value) override;
  void copy(Tensor from, Tensor to) override;
  void copy_block(DType dtype, std::int64_t rows, std::int64_t columns, const void* from,
                  std::int64_t from_row, void* to, std::int64_t to_row) override;
  void permute(Tensor from, std::span<const int> order, Tensor to) override;

  void add(Tensor a, Tensor b, Tensor out) override;
  void multiply(Tensor a, Tensor b, Tensor out) override;
  void scale(Tensor x, double factor, Tensor out) override;
  void extremum(Extremum kind, Tensor a, Tensor b, Tensor out) override;
  void extremum_gradient(Extremum kind, Tensor a, Tensor b, Tensor dy, Tensor da) override;
  void add_bias(Tensor x, Tensor bias, Tensor out) override;
  void affine_columns(Tensor x, Tensor centre, Tensor scale, Tensor shift, Tensor out) override;
  void activation(const ActivationFunction& f, Tensor x, Tensor y) override;
  void activation_gradient(const ActivationFunction& f, Tensor x, Tensor dy, Tensor dx) override;
  void dropout(const DropoutMask& mask, Tensor x, Tensor y) override;

  void gemm(const Gemm& product) override;
  void attention(const Attention& call) override;
  void attention_gradient(const Attention& call, const AttentionGradient& gradient) override;

  void column_sum(Tensor x, const Leaves& rows, Tensor out) override;
  void column_dot(Tensor a, Tensor b, const Leaves& rows, Tensor out) override;
  void scatter_add(Tensor ids, Tensor dy, const Leaves& rows, Tensor out) override;
  double sum(Tensor x, const Leaves& leaves) override;
  void mean_middle(Tensor x, Tensor mask, Tensor out) override;
  void mean_middle_gradient(Tensor dy, Tensor mask, Tensor dx) override;

  void keep(Tensor ids, Tensor mask, Tensor out) override;
  void not_equal(Tensor ids, std::int32_t value, Tensor mask) override;
  void either(Tensor a, Tensor b, Tensor out) override;
  std::int64_t count_set(Tensor mask) override;
  void clear_rows(Tensor x, Tensor mask) override;
  void scale_rows(Tensor x, Tensor weights) override;

  double sum_of_squares(Tensor x) override;

  void gather(Tensor table, Tensor ids, Tensor out) override;
  void softmax(Tensor x, bool log, Tensor y) override;
  void softmax_gradient(Tensor y, bool log, Tensor dy, Tensor dx) override;
  void layer_norm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y, Tensor statistics) override;
  void layer_norm_gradient(Tensor x, Tensor gamma, Tensor statistics, Tensor dy, Tensor dx,
                           Tensor normalized_dy) override;
  void rms_norm(Tensor x, Tensor scale, double epsilon, bool centre_variance, Tensor y,
                Tensor statistics) override;
  void rms_norm_gradient(Tensor x, Tensor scale, Tensor statistics, bool centre_variance, Tensor dy,
                         Tensor dx, Tensor normalized_dy) override;

  void sparse_cross_entropy(Tensor x, Tensor labels, bool from_logits, double scale, Tensor element_loss,
                            Tensor dx) override;
  void categorical_cross_entropy(Tensor x, Tensor targets, bool from_logits, double label_smoothing,
                                 double scale, Tensor element_loss, Tensor dx) override;
  void binary_cross_entropy(Tensor x, Tensor targets, bool from_logits, double label_smoothing, double scale,
                            Tensor element_loss, Tensor dx) override;
  void mean_squared_error(Tensor x, Tensor targets, double scale, Tensor element_loss, Tensor dx) override;
  void mean_absolute_error(Tensor x, Tensor targets, double scale, Tensor element_loss, Tensor dx) override;
  void huber(Tensor x, Tensor targets, double delta, double scale, Tensor element_loss, Tensor dx) override;

  void sparse_hits(Tensor x, Tensor labels, Tensor hits) override;
  void categorical_hits(Tensor x, Tensor targets, Tensor hits) override;
  void binary_hits(Tensor x, Tensor targets, double threshold, Tensor hits) override;
  void sparse_top_k_hits(Tensor x, Tensor labels, std::int64_t k, Tensor hits) override;
  void categorical_top_k_hits(Tensor x, Tensor targets, std::int64_t k, Tensor hits) override;
  void count_positives(Tensor x, Tensor targets, double threshold, Tensor both, Tensor predicted,
                       Tensor wanted) override;
  std::int64_t find_non_finite(Tensor x) override;

 private:
  // Kernels of one kind, by their place in the table.
  template <class T>
  using LossKernel = void (*LossKernels<T>::*)(const LossCall<T>&);
  template <class T>
  using NormKernel = void (*NormKernels<T>::*)(const NormForward<T>&);
  template <class T>
  using NormGradientKernel = void (*NormKernels<T>::*)(const NormBackward<T>&);
  struct LossArguments {
    Tensor x, targets, labels;
    bool from_logits = false;
    double label_smoothing = 0.0, scale = 1.0;
    Tensor element_loss, dx;
    double delta = 1.0;
  };

  template <class T>
  const KernelTable<T>& table() const {
    return kernels<T>(instructions_);
  }
  /// Calls f(begin, end, worker) for pieces of [0, rows), each of about 16384 elements.
  template <class F>
  void split_rows(std::int64_t rows, std::int64_t columns, F&& f);
  /// hits[r] = count(row r of x, r), where x is `name`'s.
  template <class T, class F>
  void count_in_rows(std::string_view name, const Tensor& x, const Tensor& hits, F&& count);
  template <class T>
  void sum_columns(const T* a, const T* b, const Leaves& rows, std::int64_t columns, T* out);
  template <class T>
  void run_norm(const NormForward<T>& whole, NormKernel<T> kernel, std::int64_t statistics_each);
  template <class T>
  void run_norm_gradient(const NormBackward<T>& whole, NormGradientKernel<T> kernel,
                         std::int64_t statistics_each);
  template <class T>
  void run_loss(const LossArguments& arguments, LossKernel<T> kernel);
  template <class T>
  T* scratch(int worker, std::int64_t elements) {
    return scratch_[static_cast<std::size_t>(worker)].template get<T>(static_cast<std::size_t>(elements));
  }

  InstructionSet instructions_;
  ThreadPool pool_;
  GemmWorkspace gemm_workspace_;
  AttentionWorkspace attention_workspace_;
  std::vector<AlignedBuffer> scratch_;  ///< one a thread
};

inline constexpr std::int64_t k_item_elements = 16384;

template <class F>
void CpuBackend::split_rows(std::int64_t rows, std::int64_t columns, F&& f) {
  const std::int64_t each = std::max<std::int64_t>(1, k_item_elements / std::max<std::int64_t>(1, columns));
  pool_.parallel_for((rows + each - 1) / each, [&](std::int64_t item, int worker) {
    f(item * each, std::min(rows, (item + 1) * each), worker);
  });
}

}  // namespace rankine
