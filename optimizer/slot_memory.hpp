#pragma once

#include <span>
#include <string>
#include <vector>

#include "optimizer/rule.hpp"
#include "runtime/compute/backend.hpp"
#include "runtime/model/variable.hpp"
#include "runtime/state.hpp"

namespace rankine {

/// The state that an optimizer keeps for each variable: one tensor for each (variable, kind), found by these
/// two numbers and never by a name.
class SlotMemory {
 public:
  SlotMemory() = default;
  /// Allocates everything in one piece and fills it with the kinds' initial values.
  SlotMemory(std::span<Variable* const> variables, std::vector<SlotKind> kinds, Backend& backend);

  /// Of the variable-th variable and the kind-th kind.
  const Tensor& at(std::size_t variable, std::size_t kind) const {
    return tensors_[variable * kinds_.size() + kind];
  }
  /// Appends all in Keras's order: group after group; inside a group the variables in order, each with the
  /// group's kinds. `name` is the optimizer's.
  void append_to(StateDict& state, const std::string& name) const;

 private:
  std::vector<Variable*> variables_;
  std::vector<SlotKind> kinds_;
  std::vector<Tensor> tensors_;
  Buffer memory_;
};

}  // namespace rankine
