#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optimizer/clip.hpp"
#include "optimizer/make_optimizer.hpp"
#include "optimizer/reducer.hpp"
#include "optimizer/rule.hpp"
#include "optimizer/schedule.hpp"
#include "optimizer/slot_memory.hpp"
#include "optimizer/update.hpp"
#include "runtime/training/optimizer.hpp"

namespace rankine {

/// What a Keras optimizer config says.
struct OptimizerSettings {
  const RuleKind* kind = nullptr;
  std::unique_ptr<Rule> rule;
  std::string name;            ///< of the instance: "adam_w"; state paths begin with it
  Schedule schedule;           ///< empty for a constant rate
  float learning_rate = 0.0F;  ///< without a schedule
  std::optional<double> weight_decay;
  Clip clip;
  std::int64_t accumulation_steps = 1;  ///< gradient_accumulation_steps
};

/// Any rule, right on any mesh: gathers gradients in tree order (Reducer), and applies Keras's steps around
/// the rule in Keras's order: penalties' gradients, accumulate, clip, decay the weights, rule, constraints,
/// counters. It holds exactly Keras's state: the counters, and slots by (variable, kind).
class CoordinatedOptimizer final : public Optimizer {
 public:
  CoordinatedOptimizer(OptimizerSettings settings, const OptimizerOptions& options);

  std::string_view name() const override { return settings_.kind->class_name; }
  std::vector<SlotSpec> slots(const Variable& variable) const override;
  void expect_passes(std::span<const Node> passes, std::int64_t leaves) override;
  void attach(std::span<Variable> variables, std::span<const GradientUse> uses, Communicator& data,
              Backend& backend) override;
  void begin_step(const StepShares& shares) override;
  void begin_pass(Node node, bool last) override;
  Tensor gradient(int use) override;
  void gradient_ready(int use) override;
  void progress() override;
  UpdateReport apply() override;
  Tensor reduced_gradient(int variable) const override;
  StateDict state() override;
  void state_changed() override;

 private:
  /// A trainable variable: where its gradients are, and what is known of them in this step.
  struct Trained {
    Variable* variable = nullptr;
    std::vector<int> uses;
    int last_bucket = -1;  ///< the bucket after which all of them are reduced
    Tensor gradient;       ///< reduced, of all uses
    double squares = 0.0;  ///< of its elements
  };

  std::vector<SlotKind> slot_kinds() const;
  void list_trained(std::span<Variable> variables, std::span<const GradientUse> uses);
  void allocate_counters();
  void place_gradients();
  void collect_gradients();
  void check_finite(const Trained& trained) const;
  double gradient_norm() const;
  float current_learning_rate() const;
  bool accumulates() const { return settings_.accumulation_steps > 1; }
  void accumulate(bool completes);
  void update_weights(const UpdateScalars& scalars);
  void constrain_weights();

  OptimizerSettings settings_;
  OptimizerOptions options_;
  int copies_ = 1;

  Backend* backend_ = nullptr;
  std::unique_ptr<Reducer> reducer_;
  std::vector<Trained> trained_;
  std::vector<int> trained_of_;  ///< by variable ordinal; -1 for one that isn't trained
  std::vector<int> variable_of_use_;
  Buffer no_gradient_;  ///< for variables that the loss doesn't depend on
  SlotMemory slots_;
  std::vector<std::byte> scratch_;

  Buffer counters_;
  Tensor iteration_tensor_;      ///< int32: batches seen, as Keras counts
  Tensor learning_rate_tensor_;  ///< float32; absent with a schedule
  std::int64_t iteration_ = 0;
  std::int64_t step_ = 0;
};

}  // namespace rankine
