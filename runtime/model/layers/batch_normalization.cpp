#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/model/config_reader.hpp"
#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/kinds.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {
namespace {

/// What Keras adds to the number of rows that a mask leaves.
constexpr double k_mask_epsilon = 1e-7;

template <class F>
void with_type(DType dtype, const F& f) {
  if (dtype == DType::float64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta, with the mean and variance of each channel: in
/// training those of the whole batch of a step, over all passes and ranks; else the moving ones. A mask takes
/// rows out of the statistics, not out of what is normalised.
///
/// Sums over the batch: 0 is [C + 2], of x, with the number of rows that count, and more than 0 where a mask
/// says so; 1 is [C], of (x - mean)^2; 2 is [2, C], of dy and of dy * (x - mean) / sqrt(variance + epsilon).
class BatchNormalization final : public Layer {
 public:
  BatchNormalization(LayerCommon layer_common, const nlohmann::json& config)
      : Layer(std::move(layer_common)) {
    ConfigReader reader(config, layer_label(common()));
    axis_ = reader.get<std::int64_t>("axis", -1);
    momentum_ = reader.get<double>("momentum", 0.99);
    epsilon_ = reader.get<double>("epsilon", 1e-3);
    has_beta_ = reader.get<bool>("center", true);
    has_gamma_ = reader.get<bool>("scale", true);
    gamma_rules_ = reader.weight("gamma", "ones");
    beta_rules_ = reader.weight("beta", "zeros");
    mean_initializer_ = reader.initializer("moving_mean_initializer", "zeros");
    variance_initializer_ = reader.initializer("moving_variance_initializer", "ones");
    if (reader.get<bool>("renorm", false)) reader.refuse("has renorm = true, which isn't supported");
    // The statistics are always those of all ranks.
    reader.ignore({"synchronized", "renorm_clipping", "renorm_momentum"});
    reader.finish();
  }

  void build(std::span<const ValueSpec> inputs, VariableBuilder& variables) const override {
    const Shape shape{channels(inputs[0].shape)};
    const auto add = [&](const char* name, const WeightRules& rules, bool trainable) {
      variables.add({}, name, shape, rules, fans_of(shape), trainable);
    };
    if (has_gamma_) add("gamma", gamma_rules_, common().trainable);
    if (has_beta_) add("beta", beta_rules_, common().trainable);
    add("moving_mean", {mean_initializer_}, false);
    add("moving_variance", {variance_initializer_}, false);
  }

  ValueSpec output(std::span<const ValueSpec> inputs) const override {
    const ValueSpec& x = one_floating_input(common(), inputs);
    (void)sample_axis(common(), axis_, x.shape);
    return x;
  }

  void expect_maskable(std::span<const ValueSpec> inputs) const override {
    if (is_moved(inputs[0].shape))
      refuse_layer(common(), "has axis = " + std::to_string(axis_) +
                                 " and a masked input; only the last axis is supported with masks");
  }

  CallPlan plan(std::span<const ValueSpec> inputs, const CallArguments&) const override {
    const Shape& sample = inputs[0].shape;
    const std::int64_t c = channels(sample);
    const TensorSpec whole{sample, common().dtype, true}, vectors{{4, c}, common().dtype, false};
    CallPlan plan;
    plan.forward_scratch = plan.backward_scratch = {vectors, whole};
    if (is_moved(sample)) {
      plan.forward_scratch.insert(plan.forward_scratch.end(), 1, whole);
      plan.backward_scratch.insert(plan.backward_scratch.end(), 2, whole);
    }
    const auto moving = static_cast<int>(gammas_and_betas());
    plan.idle_variables = {moving, moving + 1};
    if (!uses_batch()) return plan;
    plan.saved = {{{2, c}, common().dtype, false}};  // this pass's share of sum 2
    plan.forward_sums = {c + 2, c};
    plan.backward_sums = {2 * c};
    return plan;
  }

  void add_to_sum(const CallContext& call, std::size_t sum, const Tensor& share) const override {
    const Tensor x = channels_last(call, call.inputs[0], 2);
    const Leaves rows = call.row_leaves(rows_of(x) / std::max<std::int64_t>(call.samples, 1));
    const Tensor work = call.scratch[1].reshaped(x.shape), mask = call.mask(0);
    const std::int64_t c = columns_of(x);
    if (sum == 0) return sum_rows(call, x, rows, share);
    write_statistics(call);
    if (sum == 1) {
      write_vector(call, k_scale, [](auto, auto) { return 1; });
      call.backend.affine_columns(x, vector(call, k_mean), vector(call, k_scale), {}, work);
      if (mask) call.backend.clear_rows(work, mask);
      return call.backend.column_dot(work, work, rows, share);
    }
    const Tensor dy = channels_last(call, call.output_gradient, 3);
    call.backend.affine_columns(x, vector(call, k_mean), vector(call, k_rstd), {}, work);
    call.backend.column_sum(dy, rows, part(share, 0, c));
    call.backend.column_dot(dy, work, rows, part(share, c, c));
    call.backend.copy(share, call.saved[0].reshaped(share.shape));
  }

  void forward(const CallContext& call) const override {
    const Tensor x = channels_last(call, call.inputs[0], 2);
    write_statistics(call);
    write_scale(call);
    const Tensor beta = has_beta_ ? call.variables[has_gamma_ ? 1 : 0] : Tensor{};
    const Tensor y = is_moved(sample_shape(call.output)) ? call.scratch[1].reshaped(x.shape)
                                                         : call.output.reshaped(x.shape);
    call.backend.affine_columns(x, vector(call, k_mean), vector(call, k_scale), beta, y);
    put_back(call, y, call.output);
  }

  void backward(const CallContext& call) const override {
    const Tensor dy = channels_last(call, call.output_gradient, 3), dx = call.input_gradients[0];
    const std::int64_t c = columns_of(dy);
    for (std::size_t i = 0; i < call.variable_gradients.size() && i < gammas_and_betas(); ++i) {
      const bool is_gamma = has_gamma_ && i == 0;
      if (call.variable_gradients[i])
        call.backend.copy(part(call.saved[0], is_gamma ? c : 0, c), call.variable_gradients[i]);
    }
    if (!dx) return;
    const Tensor out = is_moved(sample_shape(dx)) ? dy : dx.reshaped(dy.shape);
    const Tensor work = call.scratch[1].reshaped(dy.shape);
    write_statistics(call);
    write_scale(call);
    if (uses_batch()) {
      write_through_statistics(call, work);
      call.backend.affine_columns(dy, {}, vector(call, k_scale_again), {}, out);
      call.backend.add(out, work, out);
    } else {
      call.backend.affine_columns(dy, {}, vector(call, k_scale), {}, out);
    }
    put_back(call, out, dx);
  }

  void after_update(const CallContext& call) const override {
    call.backend.synchronize();
    with_type(common().dtype, [&]<class T>() {
      const Batch<T> batch(call);
      T* mean = call.variables[gammas_and_betas()].as<T>();
      T* variance = call.variables[gammas_and_betas() + 1].as<T>();
      const T old = static_cast<T>(momentum_), now = static_cast<T>(1.0 - momentum_);
      for (std::int64_t c = 0; c < batch.channels; ++c) {
        mean[c] = mean[c] * old + batch.mean(c) * now;
        variance[c] = variance[c] * old + batch.variance(c) * now;
      }
    });
  }

 private:
  /// Rows of scratch 0, one number a channel.
  enum Vector : std::uint8_t { k_mean, k_rstd, k_scale, k_scale_again };

  /// What the sums over the batch say.
  template <class T>
  struct Batch {
    const T *sum, *squares;
    std::int64_t channels;
    T epsilon, divisor;

    explicit Batch(const CallContext& call)
        : sum(call.sums[0].as<T>()),
          squares(call.sums[1].as<T>()),
          channels(call.sums[1].elements()),
          epsilon(sum[channels + 1] > T{0} ? static_cast<T>(k_mask_epsilon) : T{0}),
          divisor(sum[channels] + epsilon) {}
    T mean(std::int64_t c) const { return sum[c] / divisor; }
    T variance(std::int64_t c) const { return squares[c] / divisor; }
  };

  bool uses_batch() const { return common().trainable; }
  std::size_t gammas_and_betas() const { return (has_gamma_ ? 1U : 0U) + (has_beta_ ? 1U : 0U); }
  std::int64_t channels(const Shape& sample) const { return sample[sample_axis(common(), axis_, sample)]; }
  bool is_moved(const Shape& sample) const {
    return sample_axis(common(), axis_, sample) != sample.rank() - 1;
  }

  // ---- channels as columns

  /// [samples, before, channels, after] from or to [samples, before, after, channels].
  void move_channels(const CallContext& call, const Tensor& from, const Tensor& to, const Shape& sample,
                     bool to_last) const {
    const int axis = sample_axis(common(), axis_, sample);
    const std::int64_t before = sample.product(0, axis), after = sample.product(axis + 1, sample.rank());
    const Shape plain{call.samples, before, sample[axis], after},
        moved{call.samples, before, after, sample[axis]};
    static constexpr int k_order[] = {0, 1, 3, 2};
    call.backend.permute(from.reshaped(to_last ? plain : moved), k_order,
                         to.reshaped(to_last ? moved : plain));
  }
  /// As a matrix with a column a channel; where they aren't the last axis, in scratch number `scratch`.
  Tensor channels_last(const CallContext& call, const Tensor& x, std::size_t scratch) const {
    const Shape sample = sample_shape(x);
    const std::int64_t c = channels(sample);
    const Shape matrix{c == 0 ? 0 : x.elements() / c, c};
    if (!is_moved(sample)) return x.reshaped(matrix);
    move_channels(call, x, call.scratch[scratch], sample, true);
    return call.scratch[scratch].reshaped(matrix);
  }
  void put_back(const CallContext& call, const Tensor& from, const Tensor& to) const {
    const Shape sample = sample_shape(to);
    if (is_moved(sample)) move_channels(call, from, to, sample, false);
  }

  // ---- one number a channel

  static Tensor part(const Tensor& vector, std::int64_t begin, std::int64_t count) {
    return {element(vector, begin), vector.dtype, {count}};
  }
  static Tensor vector(const CallContext& call, Vector which) {
    const std::int64_t c = columns_of(call.scratch[0]);
    return part(call.scratch[0], which * c, c);
  }
  template <class F>
  void write_vector(const CallContext& call, Vector which, const F& value) const {
    with_type(common().dtype, [&]<class T>() {
      const Tensor to = vector(call, which);
      for (std::int64_t c = 0; c < to.elements(); ++c) to.as<T>()[c] = static_cast<T>(value(T{}, c));
    });
  }

  /// mean and 1 / sqrt(variance + epsilon); of the second only what its sum allows.
  void write_statistics(const CallContext& call) const {
    call.backend.synchronize();
    with_type(common().dtype, [&]<class T>() {
      T* mean = vector(call, k_mean).as<T>();
      T* rstd = vector(call, k_rstd).as<T>();
      const auto standardize = [&](std::int64_t channels, const auto& mean_of, const auto& variance_of) {
        for (std::int64_t c = 0; c < channels; ++c) {
          mean[c] = mean_of(c);
          rstd[c] = T{1} / std::sqrt(variance_of(c) + static_cast<T>(epsilon_));
        }
      };
      if (call.training && uses_batch()) {
        const Batch<T> batch(call);
        standardize(
            batch.channels, [&](auto c) { return batch.mean(c); }, [&](auto c) { return batch.variance(c); });
      } else {
        const Tensor& moving_mean = call.variables[gammas_and_betas()];
        const T* moving_variance = call.variables[gammas_and_betas() + 1].as<T>();
        standardize(
            moving_mean.elements(), [&](auto c) { return moving_mean.as<T>()[c]; },
            [&](auto c) { return moving_variance[c]; });
      }
    });
  }
  /// gamma / sqrt(variance + epsilon)
  void write_scale(const CallContext& call) const {
    write_vector(call, k_scale, [&]<class T>(T, std::int64_t c) {
      const T rstd = vector(call, k_rstd).as<T>()[c];
      return has_gamma_ ? rstd * call.variables[0].as<T>()[c] : rstd;
    });
  }

  // ---- sums

  void sum_rows(const CallContext& call, const Tensor& x, const Leaves& rows, const Tensor& share) const {
    const std::int64_t c = columns_of(x);
    const Tensor mask = call.mask(0), work = call.scratch[1].reshaped(x.shape);
    if (mask) {
      call.backend.copy(x, work);
      call.backend.clear_rows(work, mask);
    }
    call.backend.column_sum(mask ? work : x, rows, part(share, 0, c));
    const std::int64_t count = mask ? call.backend.count_set(mask) : rows_of(x);
    call.backend.fill(part(share, c, 1), static_cast<double>(count));
    call.backend.fill(part(share, c + 1, 1), mask ? 1.0 : 0.0);
  }

  /// work = what reaches x through the batch's mean and variance; k_scale_again becomes the old k_scale.
  void write_through_statistics(const CallContext& call, const Tensor& work) const {
    const Tensor x = channels_last(call, call.inputs[0], 2);
    const Tensor slope = vector(call, k_rstd), offset = vector(call, k_scale);
    call.backend.copy(offset, vector(call, k_scale_again));
    call.backend.synchronize();
    with_type(common().dtype, [&]<class T>() {
      const Batch<T> batch(call);
      const T* sum_dy = call.sums[2].as<T>();
      const T* sum_normalized_dy = sum_dy + batch.channels;
      for (std::int64_t c = 0; c < batch.channels; ++c) {
        const T scale = offset.as<T>()[c], rstd = slope.as<T>()[c];
        const T twice_dvariance = -scale * rstd * sum_normalized_dy[c];
        // The sum of x - mean isn't 0 where Keras adds an epsilon to the number of rows.
        const T dmean = -scale * sum_dy[c] - twice_dvariance / batch.divisor * batch.mean(c) * batch.epsilon;
        slope.as<T>()[c] = twice_dvariance / batch.divisor;
        offset.as<T>()[c] = dmean / batch.divisor;
      }
    });
    call.backend.affine_columns(x, vector(call, k_mean), slope, offset, work);
    if (const Tensor mask = call.mask(0)) call.backend.clear_rows(work, mask);
  }

  std::int64_t axis_ = -1;
  double momentum_ = 0.99, epsilon_ = 1e-3;
  bool has_gamma_ = true, has_beta_ = true;
  WeightRules gamma_rules_, beta_rules_;
  std::shared_ptr<const Initializer> mean_initializer_, variance_initializer_;
};

}  // namespace

std::unique_ptr<Layer> make_batch_normalization(LayerCommon common, const nlohmann::json& config) {
  return std::make_unique<BatchNormalization>(std::move(common), config);
}

}  // namespace rankine
