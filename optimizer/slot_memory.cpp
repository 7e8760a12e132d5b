#include "optimizer/slot_memory.hpp"

#include <algorithm>
#include <set>

namespace rankine {
namespace {

std::size_t rounded_to_lines(std::size_t bytes) {
  constexpr std::size_t k_line = 64;
  return (bytes + k_line - 1) / k_line * k_line;
}

/// Keras's path of a slot: the variable's, flattened, in the optimizer's scope.
std::string slot_path(const std::string& optimizer, const std::string& variable, const std::string& kind) {
  std::string flat = variable;
  std::replace(flat.begin(), flat.end(), '/', '_');
  return optimizer + "/" + flat + "_" + kind;
}

}  // namespace

SlotMemory::SlotMemory(std::span<Variable* const> variables, std::vector<SlotKind> kinds, Backend& backend)
    : variables_(variables.begin(), variables.end()), kinds_(std::move(kinds)) {
  std::size_t bytes = 0;
  for (const Variable* variable : variables_) {
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      tensors_.push_back({nullptr, variable->dtype, variable->shape});
      bytes += rounded_to_lines(tensors_.back().bytes());
    }
  }
  if (bytes == 0) return;
  memory_ = backend.allocate(bytes);
  std::size_t at = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& tensor = tensors_[i];
    tensor.data = memory_.data() + at;
    at += rounded_to_lines(tensor.bytes());
    backend.fill(tensor, kinds_[i % kinds_.size()].initial);
  }
}

void SlotMemory::append_to(StateDict& state, const std::string& name) const {
  std::set<int> groups;
  for (const auto& kind : kinds_) groups.insert(kind.group);
  for (const int group : groups) {
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      for (std::size_t k = 0; k < kinds_.size(); ++k) {
        if (kinds_[k].group != group) continue;
        const Tensor& tensor = at(v, k);
        state.push_back({"optimizer/vars/" + std::to_string(state.size()),
                         slot_path(name, variables_[v]->path, kinds_[k].name), StateRole::slot, tensor.shape,
                         tensor});
      }
    }
  }
}

}  // namespace rankine
