#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/arithmetic/activation_function.hpp"
#include "runtime/arithmetic/attention_call.hpp"
#include "runtime/arithmetic/dropout_mask.hpp"
#include "runtime/arithmetic/gemm_call.hpp"
#include "runtime/arithmetic/instruction_set.hpp"
#include "runtime/arithmetic/leaf.hpp"
#include "runtime/compute/tensor.hpp"

namespace rankine {

/// Which of two elements is taken.
enum class Extremum : std::uint8_t { maximum, minimum };

/// Memory and kernels of one device. Every tensor of a call has the same floating dtype unless a parameter
/// says int32, and is contiguous. Calls run in order; on a device with streams they are enqueued and
/// `synchronize` waits. Every sum follows runtime/arithmetic/leaf.hpp, so results depend neither on threads
/// nor on the instruction set. "rows" are all dimensions but the last, "columns" the last one. Outputs never
/// overlap inputs unless said.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string description() const = 0;  ///< for people: "cpu, AVX-512, 2 threads"
  virtual Buffer allocate(std::size_t bytes) = 0;
  virtual void synchronize() = 0;

  // ---- moving elements
  virtual void fill(Tensor x, double value) = 0;
  virtual void copy(Tensor from, Tensor to) = 0;
  /// Copies `rows` rows of `columns` elements between arrays whose rows lie `from_row` and `to_row` elements
  /// apart.
  virtual void copy_block(DType dtype, std::int64_t rows, std::int64_t columns, const void* from,
                          std::int64_t from_row, void* to, std::int64_t to_row) = 0;
  /// to[i_order[0], i_order[1], ...] = from[i_0, i_1, ...]: dimension d of `to` is dimension order[d] of
  /// `from`.
  virtual void permute(Tensor from, std::span<const int> order, Tensor to) = 0;

  // ---- elementwise; outputs may be an input
  virtual void add(Tensor a, Tensor b, Tensor out) = 0;
  virtual void multiply(Tensor a, Tensor b, Tensor out) = 0;
  virtual void scale(Tensor x, double factor, Tensor out) = 0;
  /// The larger or smaller of two elements; not a number where one of them isn't.
  virtual void extremum(Extremum kind, Tensor a, Tensor b, Tensor out) = 0;
  /// da = dy where a was taken, dy / 2 where a equals b, else 0.
  virtual void extremum_gradient(Extremum kind, Tensor a, Tensor b, Tensor dy, Tensor da) = 0;
  /// x[rows, columns] + bias[columns]
  virtual void add_bias(Tensor x, Tensor bias, Tensor out) = 0;
  /// out[rows, c] = fma(x[rows, c] - centre[c], scale[c], shift[c]). `centre` and `shift` may be absent, for
  /// zeros.
  virtual void affine_columns(Tensor x, Tensor centre, Tensor scale, Tensor shift, Tensor out) = 0;
  virtual void activation(const ActivationFunction& f, Tensor x, Tensor y) = 0;
  /// dx = dy * f'(x); x is what went into the activation.
  virtual void activation_gradient(const ActivationFunction& f, Tensor x, Tensor dy, Tensor dx) = 0;
  /// y = x * mask / (1 - rate); also its own gradient. x is [samples, ...].
  virtual void dropout(const DropoutMask& mask, Tensor x, Tensor y) = 0;

  // ---- products
  virtual void gemm(const Gemm& product) = 0;
  virtual void attention(const Attention& call) = 0;
  virtual void attention_gradient(const Attention& call, const AttentionGradient& gradient) = 0;

  // ---- sums over rows (a batch), cut as `rows` says
  /// out[columns] = sum over rows of x.
  virtual void column_sum(Tensor x, const Leaves& rows, Tensor out) = 0;
  /// out[columns] = sum over rows of a * b.
  virtual void column_dot(Tensor a, Tensor b, const Leaves& rows, Tensor out) = 0;
  /// out[vocabulary, columns] = 0, then row ids[r] += dy[r] in the order of the rows' leaves and tree. Ids
  /// are checked by `gather`.
  virtual void scatter_add(Tensor ids, Tensor dy, const Leaves& rows, Tensor out) = 0;
  /// The sum over all elements of a floating or double array whose elements are the terms, in double.
  virtual double sum(Tensor x, const Leaves& leaves) = 0;

  // ---- rows
  /// out[r] = table[ids[r]]; throws DataError naming the first id outside [0, rows of table).
  virtual void gather(Tensor table, Tensor ids, Tensor out) = 0;
  /// Softmax of each row (log_softmax with `log`).
  virtual void softmax(Tensor x, bool log, Tensor y) = 0;
  /// dx from y (the output of softmax or, with `log`, log_softmax) and dy.
  virtual void softmax_gradient(Tensor y, bool log, Tensor dy, Tensor dx) = 0;
  /// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta. gamma and beta may be absent. `statistics`
  /// [rows, 2] receives mean and 1 / sqrt(variance + epsilon).
  virtual void layer_norm(Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y,
                          Tensor statistics) = 0;
  /// dx as of layer_norm, absent when x has no gradient. `normalized_dy` (absent when gamma has no gradient)
  /// receives dy * (x - mean) * rstd, whose column_sum is gamma's gradient; beta's is the column_sum of dy.
  virtual void layer_norm_gradient(Tensor x, Tensor gamma, Tensor statistics, Tensor dy, Tensor dx,
                                   Tensor normalized_dy) = 0;
  /// y = x / sqrt(mean(x^2) + epsilon) * scale; scale may be absent; statistics [rows] receives 1 /
  /// sqrt(...). With `centre_variance` the variance replaces the mean square (Keras's
  /// LayerNormalization(rms_scaling=True)).
  virtual void rms_norm(Tensor x, Tensor scale, double epsilon, bool centre_variance, Tensor y,
                        Tensor statistics) = 0;
  virtual void rms_norm_gradient(Tensor x, Tensor scale, Tensor statistics, bool centre_variance, Tensor dy,
                                 Tensor dx, Tensor normalized_dy) = 0;
  /// out[s, columns] = mean over the middle dimension of x[s, length, columns]; and its gradient (dy /
  /// length, spread). With `mask` [s, length] over the rows that count, so not a number where none does;
  /// absent, all count.
  virtual void mean_middle(Tensor x, Tensor mask, Tensor out) = 0;
  virtual void mean_middle_gradient(Tensor dy, Tensor mask, Tensor dx) = 0;

  // ---- masks: int32, 1 for what counts and 0 for what doesn't
  /// out[i] = ids[i] where mask[i] isn't 0, else 0; `out` may be one of them.
  virtual void keep(Tensor ids, Tensor mask, Tensor out) = 0;
  /// mask[i] = 1 where ids[i] isn't `value`.
  virtual void not_equal(Tensor ids, std::int32_t value, Tensor mask) = 0;
  /// out[i] = 1 where a[i] or b[i] is; `out` may be one of them.
  virtual void either(Tensor a, Tensor b, Tensor out) = 0;
  virtual std::int64_t count_set(Tensor mask) = 0;
  /// Puts 0 into the rows of x whose entry of mask [rows] is 0.
  virtual void clear_rows(Tensor x, Tensor mask) = 0;
  /// Multiplies each row of x by its entry of weights [rows], which may be of the other floating dtype; the
  /// products are rounded once, to x's.
  virtual void scale_rows(Tensor x, Tensor weights) = 0;

  // ---- losses: element_loss[r] gets each unreduced element in double; dx = gradient of sum(element_loss) *
  // scale. Absent dx: the loss only. Keras's definitions (keras.md F.2).
  /// x [rows, classes], labels int32 [rows]. Throws DataError naming the first label outside [0, classes).
  virtual void sparse_cross_entropy(Tensor x, Tensor labels, bool from_logits, double scale,
                                    Tensor element_loss, Tensor dx) = 0;
  /// x and targets [rows, classes].
  virtual void categorical_cross_entropy(Tensor x, Tensor targets, bool from_logits, double label_smoothing,
                                         double scale, Tensor element_loss, Tensor dx) = 0;
  /// Mean over the last dimension of each row.
  virtual void binary_cross_entropy(Tensor x, Tensor targets, bool from_logits, double label_smoothing,
                                    double scale, Tensor element_loss, Tensor dx) = 0;
  virtual void mean_squared_error(Tensor x, Tensor targets, double scale, Tensor element_loss, Tensor dx) = 0;
  virtual void mean_absolute_error(Tensor x, Tensor targets, double scale, Tensor element_loss,
                                   Tensor dx) = 0;
  virtual void huber(Tensor x, Tensor targets, double delta, double scale, Tensor element_loss,
                     Tensor dx) = 0;

  // ---- metrics: hits[r] gets what row r counts, in double
  /// 1 where the row's largest element (the lowest index among equals) is at labels[r], else 0.
  virtual void sparse_hits(Tensor x, Tensor labels, Tensor hits) = 0;
  /// 1 where the rows' largest elements are at the same place in both, else 0.
  virtual void categorical_hits(Tensor x, Tensor targets, Tensor hits) = 0;
  /// Elements whose target equals (x > threshold ? 1 : 0), as Keras counts binary accuracy.
  virtual void binary_hits(Tensor x, Tensor targets, double threshold, Tensor hits) = 0;
  /// 1 where fewer than k elements of the row are larger than that at labels[r], else 0. A NaN there is
  /// smaller than all; a label below 0 counts from the end, one outside the row finds nothing (as in JAX).
  virtual void sparse_top_k_hits(Tensor x, Tensor labels, std::int64_t k, Tensor hits) = 0;
  /// The same, with the place of the target's largest element as the label.
  virtual void categorical_top_k_hits(Tensor x, Tensor targets, std::int64_t k, Tensor hits) = 0;
  /// Elements above the threshold (`predicted`), with a target other than 0 (`wanted`), and both. Absent
  /// tensors aren't written.
  virtual void count_positives(Tensor x, Tensor targets, double threshold, Tensor both, Tensor predicted,
                               Tensor wanted) = 0;

  /// Index of the first element that is NaN or infinite, or -1.
  virtual std::int64_t find_non_finite(Tensor x) = 0;
  /// Sum of squares of a logical tensor in double. Leaves of feature_leaf(size) on every dimension cut it
  /// into tiles. In a tile, element c of the last dimension (counted from the tile's start) belongs to lane c
  /// mod 16; each lane is a chain of fused multiply-adds in row-major order, lanes are added 8, 4, 2, 1
  /// apart. Then the trees over the tiles' indices, from the last dimension to the first.
  virtual double sum_of_squares(Tensor x) = 0;
};

/// The CPU backend. `threads` >= 1 counts the calling thread. Throws ConfigError when the processor lacks the
/// set.
std::unique_ptr<Backend> make_cpu_backend(int threads, InstructionSet instructions);

}  // namespace rankine
