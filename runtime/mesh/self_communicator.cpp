#include "runtime/mesh/self_communicator.hpp"

#include <cstring>
#include <utility>

#include "runtime/mesh/communicator_checks.hpp"

namespace rankine {
namespace {

class FinishedWork final : public Work {
 public:
  explicit FinishedWork(std::uint64_t sequence) : sequence_(sequence) {}
  bool done() override { return true; }
  void wait() override {}
  std::uint64_t sequence() const override { return sequence_; }

 private:
  std::uint64_t sequence_;
};

void copy_elements(DType dtype, void* to, const void* from, Range range) {
  if (range.size() == 0) return;  // an operand without elements has no address
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const auto begin = range.begin * element;
  std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
              static_cast<std::size_t>(range.size() * element));
}

void fill_with_zero(DType dtype, void* to, Range range) {
  if (range.size() == 0) return;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  std::memset(static_cast<std::byte*>(to) + range.begin * element, 0,
              static_cast<std::size_t>(range.size() * element));
}

}  // namespace

SelfCommunicator::SelfCommunicator(std::string name, std::string member)
    : name_(std::move(name)), member_(std::move(member)) {}

WorkHandle SelfCommunicator::finished() {
  return std::make_unique<FinishedWork>(++sequence_);
}

WorkHandle SelfCommunicator::tree_all_reduce(DType dtype, const TreeShares& shares,
                                             std::span<void* const> nodes, std::int64_t count, void* result) {
  const Range whole[] = {{0, count}};
  return tree_reduce_scatter(dtype, shares, nodes, count, result, whole);
}

WorkHandle SelfCommunicator::tree_reduce_scatter(DType dtype, const TreeShares& shares,
                                                 std::span<void* const> nodes, std::int64_t count,
                                                 void* result, std::span<const Range> pieces) {
  check_tree_sum(*this, dtype, shares, nodes.size(), count);
  check_pieces(*this, pieces, count);
  // All leaves are here, so there is one node, the root; no leaves give no node.
  if (nodes.empty()) {
    fill_with_zero(dtype, result, pieces[0]);
  } else if (nodes[0] != result) {
    copy_elements(dtype, result, nodes[0], pieces[0]);
  }
  return finished();
}

WorkHandle SelfCommunicator::all_gather(DType, void*, std::span<const Range> pieces) {
  check_pieces(*this, pieces, -1);
  return finished();
}

WorkHandle SelfCommunicator::all_reduce(std::span<std::int64_t>, ReduceOp) {
  return finished();
}

WorkHandle SelfCommunicator::all_reduce(std::span<double>, ReduceOp op) {
  check_double_reduce(*this, op);
  return finished();
}

WorkHandle SelfCommunicator::broadcast(void*, std::size_t, int root) {
  check_root(*this, root);
  return finished();
}

void SelfCommunicator::barrier() {
  ++sequence_;
}

std::unique_ptr<Communicator> SelfCommunicator::split(int colour, int, const std::string& name) {
  if (colour < 0) return nullptr;
  return std::make_unique<SelfCommunicator>(name, member_);
}

}  // namespace rankine
