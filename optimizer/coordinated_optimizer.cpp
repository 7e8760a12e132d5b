#include "optimizer/coordinated_optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "optimizer/penalty_gradient.hpp"
#include "runtime/error.hpp"

namespace rankine {
namespace {

const char* const k_accumulator = "gradient_accumulator";

}  // namespace

CoordinatedOptimizer::CoordinatedOptimizer(OptimizerSettings settings, const OptimizerOptions& options)
    : settings_(std::move(settings)), options_(options) {}

/// The rule's own kinds first, so that they have the rule's numbers; Keras lists the accumulators before.
std::vector<SlotKind> CoordinatedOptimizer::slot_kinds() const {
  auto kinds = settings_.rule->slots();
  if (accumulates()) kinds.push_back({k_accumulator, -1});
  return kinds;
}

std::vector<SlotSpec> CoordinatedOptimizer::slots(const Variable& variable) const {
  std::vector<SlotSpec> specs;
  if (!variable.trainable) return specs;
  for (const auto& kind : slot_kinds()) specs.push_back({kind.name, variable.shape, variable.dtype});
  return specs;
}

// ---- attaching

void CoordinatedOptimizer::expect_passes(std::span<const Node> passes, std::int64_t leaves) {
  copies_ = std::max(copies_, pending_copies(passes, leaves));
}

void CoordinatedOptimizer::attach(std::span<Variable> variables, std::span<const GradientUse> uses,
                                  Communicator& data, Backend& backend) {
  backend_ = &backend;
  list_trained(variables, uses);
  std::vector<UseSize> sizes;
  for (const int v : variable_of_use_) {
    const Variable& variable = variables[static_cast<std::size_t>(v)];
    sizes.push_back({variable.dtype, variable.shape.elements()});
  }
  reducer_ = std::make_unique<Reducer>(
      lay_out_buckets(sizes, options_.first_bucket_bytes, options_.bucket_bytes), copies_, data, backend);
  place_gradients();
  std::vector<Variable*> trainable;
  for (const auto& trained : trained_) trainable.push_back(trained.variable);
  slots_ = SlotMemory(trainable, slot_kinds(), backend);
  allocate_counters();
}

void CoordinatedOptimizer::list_trained(std::span<Variable> variables, std::span<const GradientUse> uses) {
  trained_.clear();
  trained_of_.assign(variables.size(), -1);
  for (std::size_t v = 0; v < variables.size(); ++v) {
    Variable& variable = variables[v];
    if (!variable.trainable) continue;
    if (!is_floating(variable.dtype)) {
      throw ConfigError("variable " + variable.path + " is trainable and of dtype " +
                        std::string(name_of(variable.dtype)) + "; only float32 and float64 can be trained");
    }
    trained_of_[v] = static_cast<int>(trained_.size());
    trained_.push_back({&variable, {}, -1, {}, 0.0});
  }
  variable_of_use_.clear();
  for (const GradientUse& use : uses) {
    const int index = trained_of_.at(static_cast<std::size_t>(use.variable));
    if (index < 0) throw std::logic_error("a gradient of a variable that isn't trainable");
    trained_[static_cast<std::size_t>(index)].uses.push_back(static_cast<int>(variable_of_use_.size()));
    variable_of_use_.push_back(use.variable);
  }
}

/// A variable that no use names has the gradient 0, as in Keras on JAX: it still decays, and has that of its
/// penalty. Those without one share their zeros.
void CoordinatedOptimizer::place_gradients() {
  constexpr std::size_t k_line = 64;
  std::size_t zeros = 0, bytes = 0;
  for (auto& trained : trained_) {
    const Variable& variable = *trained.variable;
    trained.gradient = {nullptr, variable.dtype, variable.shape};
    for (const int use : trained.uses) {
      trained.last_bucket =
          std::max(trained.last_bucket, reducer_->layout().use_buckets[static_cast<std::size_t>(use)]);
    }
    if (!trained.uses.empty()) continue;
    const std::size_t size = (trained.gradient.bytes() + k_line - 1) / k_line * k_line;
    if (variable.rules.regularizer.is_nothing())
      zeros = std::max(zeros, size);
    else
      bytes += size;
  }
  if (zeros + bytes > 0) no_gradient_ = backend_->allocate(zeros + bytes);
  std::size_t next = zeros;
  for (auto& trained : trained_) {
    if (!trained.uses.empty()) {
      trained.gradient.data = reducer_->reduced(trained.uses.front());
    } else {
      const bool penalized = !trained.variable->rules.regularizer.is_nothing();
      trained.gradient.data = no_gradient_.data() + (penalized ? next : 0);
      if (penalized) next += (trained.gradient.bytes() + k_line - 1) / k_line * k_line;
      backend_->fill(trained.gradient, 0.0);
    }
  }
}

void CoordinatedOptimizer::allocate_counters() {
  constexpr std::size_t k_line = 64;
  counters_ = backend_->allocate(2 * k_line);
  iteration_tensor_ = {counters_.data(), DType::int32, {}};
  *iteration_tensor_.as<std::int32_t>() = static_cast<std::int32_t>(iteration_);
  if (settings_.schedule) return;
  learning_rate_tensor_ = {counters_.data() + k_line, DType::float32, {}};
  *learning_rate_tensor_.as<float>() = settings_.learning_rate;
}

// ---- a step

void CoordinatedOptimizer::begin_step(const StepShares& shares) {
  step_ = shares.step;
  reducer_->begin_step(shares.shares);
}

void CoordinatedOptimizer::begin_pass(Node node, bool last) {
  reducer_->begin_pass(node, last);
}

Tensor CoordinatedOptimizer::gradient(int use) {
  const int v = variable_of_use_[static_cast<std::size_t>(use)];
  const auto& trained = trained_[static_cast<std::size_t>(trained_of_[static_cast<std::size_t>(v)])];
  return {reducer_->memory(use), trained.variable->dtype, trained.variable->shape};
}

void CoordinatedOptimizer::gradient_ready(int use) {
  reducer_->ready(use);
}

void CoordinatedOptimizer::progress() {
  reducer_->progress();
}

UpdateReport CoordinatedOptimizer::apply() {
  collect_gradients();
  for (const auto& trained : trained_) check_finite(trained);
  UpdateReport report;
  report.gradient_norm = gradient_norm();
  const float learning_rate = current_learning_rate();
  report.learning_rate = learning_rate;

  const std::int64_t window = settings_.accumulation_steps;
  const bool updates = (iteration_ + 1) % window == 0;
  if (accumulates()) accumulate(updates);
  if (updates) update_weights({learning_rate, iteration_ / window + 1});
  constrain_weights();
  ++iteration_;
  *iteration_tensor_.as<std::int32_t>() = static_cast<std::int32_t>(iteration_);
  report.update = iteration_ / window;
  return report;
}

/// Waits for the buckets in order; while later ones travel, adds up the uses of the variables that are
/// complete, adds their penalties' gradients and squares them.
void CoordinatedOptimizer::collect_gradients() {
  const auto finish = [this](int bucket) {
    for (auto& trained : trained_) {
      if (trained.last_bucket != bucket) continue;
      const Regularizer& regularizer = trained.variable->rules.regularizer;
      if (trained.uses.empty() && regularizer.is_nothing()) continue;
      if (trained.uses.empty()) backend_->fill(trained.gradient, 0.0);
      for (std::size_t u = 1; u < trained.uses.size(); ++u) {
        const Tensor other{reducer_->reduced(trained.uses[u]), trained.gradient.dtype,
                           trained.gradient.shape};
        backend_->add(trained.gradient, other, trained.gradient);
      }
      if (!regularizer.is_nothing()) {
        backend_->synchronize();
        add_penalty_gradient(regularizer, trained.variable->value, trained.gradient);
      }
      trained.squares = backend_->sum_of_squares(trained.gradient);
      reducer_->progress();
    }
  };
  finish(-1);
  for (int b = 0; b < static_cast<int>(reducer_->layout().buckets.size()); ++b) {
    reducer_->wait(b);
    finish(b);
  }
  backend_->synchronize();
}

/// A NaN or infinity shows in the sum of squares, so the elements are only searched then.
void CoordinatedOptimizer::check_finite(const Trained& trained) const {
  if (std::isfinite(trained.squares)) return;
  const std::int64_t at = backend_->find_non_finite(trained.gradient);
  const std::string what = "step " + std::to_string(step_) + ": the gradient of " + trained.variable->path;
  if (at < 0) throw NumericError(what + " is too large to be squared; lower the learning rate");
  throw NumericError(what + " isn't finite (element " + std::to_string(at) + " of shape " +
                     trained.variable->shape.to_string() +
                     "); look for NaN in the data, lower the learning rate, or clip the gradients");
}

double CoordinatedOptimizer::gradient_norm() const {
  double squares = 0.0;
  for (const auto& trained : trained_) squares += trained.squares;
  return std::sqrt(squares);
}

float CoordinatedOptimizer::current_learning_rate() const {
  const float rate = settings_.schedule ? settings_.schedule(iteration_) : settings_.learning_rate;
  if (!std::isfinite(rate)) {
    throw NumericError("step " + std::to_string(step_) + ": the learning rate isn't finite at iteration " +
                       std::to_string(iteration_) + "; check the schedule's settings");
  }
  return rate;
}

/// Keras's gradient_accumulation_steps: the accumulators hold the sum of the window's gradients; the step
/// that completes it leaves their mean there for the update.
void CoordinatedOptimizer::accumulate(bool completes) {
  const std::size_t kind = settings_.rule->slots().size();
  for (std::size_t i = 0; i < trained_.size(); ++i) {
    Trained& trained = trained_[i];
    const Tensor& sum = slots_.at(i, kind);
    backend_->add(trained.gradient, sum, sum);
    if (!completes) continue;
    with_floating(sum.dtype, [&]<class T>() {
      const T steps = static_cast<T>(settings_.accumulation_steps);
      for (T& element : sum.span<T>()) element /= steps;
    });
    if (settings_.clip.kind != ClipKind::none) trained.squares = backend_->sum_of_squares(sum);
  }
}

void CoordinatedOptimizer::update_weights(const UpdateScalars& scalars) {
  settings_.rule->begin_update(scalars);
  VariableUpdate update{
      settings_.rule.get(), scalars.learning_rate, {settings_.clip, gradient_norm()}, settings_.weight_decay};
  const std::size_t kinds = settings_.rule->slots().size();
  for (std::size_t i = 0; i < trained_.size(); ++i) {
    const Trained& trained = trained_[i];
    if (settings_.clip.kind == ClipKind::norm) update.clip.norm = std::sqrt(trained.squares);
    const Tensor& gradient = accumulates() ? slots_.at(i, kinds) : trained.gradient;
    Elements elements{gradient.dtype, gradient.elements(), gradient.data, trained.variable->value.data, {}};
    for (std::size_t k = 0; k < kinds; ++k) elements.slots[k] = slots_.at(i, k).data;
    update.apply(elements, scratch_);
    if (accumulates()) backend_->fill(gradient, 0.0);
  }
}

/// Keras does so after each batch, also of those that are only accumulated.
void CoordinatedOptimizer::constrain_weights() {
  backend_->synchronize();
  for (const auto& trained : trained_)
    if (const auto& constraint = trained.variable->rules.constraint)
      constraint->apply(trained.variable->value);
}

// ---- what others see

Tensor CoordinatedOptimizer::reduced_gradient(int variable) const {
  const int index = trained_of_.at(static_cast<std::size_t>(variable));
  return index < 0 ? Tensor{} : trained_[static_cast<std::size_t>(index)].gradient;
}

StateDict CoordinatedOptimizer::state() {
  StateDict state;
  const auto add_counter = [&](const char* counter, const Tensor& tensor) {
    state.push_back({"optimizer/vars/" + std::to_string(state.size()), settings_.name + "/" + counter,
                     StateRole::counter, tensor.shape, tensor});
  };
  add_counter("iteration", iteration_tensor_);
  if (learning_rate_tensor_) add_counter("learning_rate", learning_rate_tensor_);
  slots_.append_to(state, settings_.name);
  return state;
}

void CoordinatedOptimizer::state_changed() {
  iteration_ = *iteration_tensor_.as<std::int32_t>();
  if (learning_rate_tensor_) settings_.learning_rate = *learning_rate_tensor_.as<float>();
}

}  // namespace rankine
