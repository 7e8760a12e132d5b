#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/arithmetic/leaf.hpp"
#include "runtime/compute/tensor.hpp"
#include "runtime/mesh/communicator.hpp"
#include "runtime/model/variable.hpp"
#include "runtime/state.hpp"

namespace rankine {

class Backend;

/// One place where a gradient of a variable is made: a variable used by two calls has two. Their sums over
/// the batch are reduced apart and added afterwards, in this order, so that the bits don't depend on who held
/// which samples.
struct GradientUse {
  int variable = -1;  ///< ordinal in the model's variables
};

/// An optimizer's state for one variable, without allocating it.
struct SlotSpec {
  std::string name;  ///< Keras's: "momentum"
  Shape shape;
  DType dtype = DType::float32;
};

/// What the leaves of one step are and who works on them; equal on every rank except `rank`.
struct StepShares {
  std::int64_t step = 0;  ///< from 1
  TreeShares shares;      ///< runs of leaves of the data axis
};

/// What an update did, for the log.
struct UpdateReport {
  std::int64_t update = 0;  ///< updates done, this one included
  double learning_rate = 0.0;
  double gradient_norm = 0.0;  ///< L2 over all gradients, before clipping
};

/// What the training loop knows of an optimizer. Calls in a step: begin_step; for each pass of this rank
/// begin_pass, gradient (any number), gradient_ready once for every use; apply. All ranks of the data group
/// take the same steps, but each has as many passes as its run has canonical nodes (maybe none).
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::string_view name() const = 0;
  /// The slots that a variable will have; the memory table needs them before anything is allocated.
  virtual std::vector<SlotSpec> slots(const Variable& variable) const = 0;
  /// Says before attach which passes of this rank a step over `leaves` leaves will have, so that attach takes
  /// the gradient memory for them: for each kind of step that comes (whole batches, the short last one). A
  /// step that wasn't announced takes what it lacks when it comes.
  virtual void expect_passes(std::span<const Node> /*passes*/, std::int64_t /*leaves*/) {}
  /// Allocates gradients and slots. `uses` in the order in which backward makes them (last layers first).
  /// `data` is a group for the gradients alone, so that nothing comes between the buckets' reductions.
  /// Collective.
  virtual void attach(std::span<Variable> variables, std::span<const GradientUse> uses, Communicator& data,
                      Backend& backend) = 0;
  virtual void begin_step(const StepShares& shares) = 0;
  /// The pass that follows computes the sums under this node. The last pass of a step lets buckets start to
  /// reduce. Passes may go on by turns: each is begun in order, and one whose node has been begun goes on;
  /// but for each use they become ready in the order of the passes.
  virtual void begin_pass(Node node, bool last) = 0;
  /// Where the pass writes the gradient of a use.
  virtual Tensor gradient(int use) = 0;
  /// The gradient of a use is complete for this pass. May start reductions; doesn't block.
  virtual void gradient_ready(int use) = 0;
  /// Advances reductions in flight without blocking.
  virtual void progress() = 0;
  /// Waits for the reductions and updates the weights. Throws NumericError naming the first variable whose
  /// gradient isn't finite.
  virtual UpdateReport apply() = 0;
  /// The reduced gradient of a variable by ordinal, before clipping; valid from apply's end to the next
  /// begin_step.
  virtual Tensor reduced_gradient(int variable) const = 0;
  /// Every state tensor in Keras's order: iteration, learning_rate (without a schedule), slots.
  virtual StateDict state() = 0;
  /// Reads back what was written into state()'s counters (call it after filling the tensors of state()).
  virtual void state_changed() = 0;
};

}  // namespace rankine
