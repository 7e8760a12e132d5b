#include "optimizer/reducer.hpp"

#include <algorithm>
#include <stdexcept>

namespace rankine {

int pending_copies(std::span<const Node> passes, std::int64_t leaves) {
  NodeStack<int> stack(leaves);
  std::size_t most = 1;
  for (const Node pass : passes) {
    most = std::max(most, stack.entries().size() + 1);
    stack.push(pass, 0, [](int, int) {});
  }
  return static_cast<int>(most);
}

Reducer::Reducer(BucketLayout layout, int copies, Communicator& group, Backend& backend)
    : layout_(std::move(layout)), group_(group), backend_(backend) {
  for (int i = 0; i < copies; ++i) add_copy();
  const std::size_t buckets = layout_.buckets.size();
  nodes_.resize(buckets);
  works_.resize(buckets);
  missing_.resize(buckets);
}

void Reducer::begin_step(const TreeShares& shares) {
  if (shares.leaves < 1 || static_cast<int>(shares.runs.size()) != group_.size()) {
    throw std::logic_error("a step needs leaves, and a run of them for each rank");
  }
  shares_ = shares;
  pending_ = NodeStack<int>(shares.leaves);
  std::fill(taken_.begin(), taken_.end(), false);
  passes_.clear();
  started_ = 0;
  last_ = shares.runs[static_cast<std::size_t>(group_.rank())].size() == 0;
  if (last_) {
    std::fill(missing_.begin(), missing_.end(), 0);
    start_complete();
  }
}

void Reducer::begin_pass(Node node, bool last) {
  const auto begun =
      std::find_if(passes_.begin(), passes_.end(), [&](const BegunPass& pass) { return pass.node == node; });
  if (begun != passes_.end()) {
    current_ = static_cast<std::size_t>(begun - passes_.begin());
    return;
  }
  if (last_) throw std::logic_error("a pass after the step's last one");
  last_ = last;
  BegunPass pass{node, take_copy(), {}, std::vector<bool>(layout_.use_offsets.size())};
  pending_.push(node, pass.copy, [&](int left, int right) {
    pass.merges.emplace_back(left, right);
    taken_[static_cast<std::size_t>(right)] = false;
  });
  current_ = passes_.size();
  passes_.push_back(std::move(pass));
  if (!last) return;
  check_last_pass();
  for (std::size_t b = 0; b < missing_.size(); ++b)
    missing_[b] = static_cast<int>(layout_.buckets[b].uses.size());
}

/// The passes together must be this rank's run, else the ranks' trees don't meet.
void Reducer::check_last_pass() const {
  const auto wanted = canonical_nodes(shares_.runs[static_cast<std::size_t>(group_.rank())], shares_.leaves);
  const auto& entries = pending_.entries();
  const bool equal = std::equal(entries.begin(), entries.end(), wanted.begin(), wanted.end(),
                                [](const auto& entry, const Node& node) { return entry.node == node; });
  if (!equal) throw std::logic_error("the passes of the step aren't this rank's run of leaves");
}

void* Reducer::memory(int use) const {
  return at(passes_.at(current_).copy, layout_.use_offsets[static_cast<std::size_t>(use)]);
}

void* Reducer::reduced(int use) const {
  return at(0, layout_.use_offsets[static_cast<std::size_t>(use)]);
}

void Reducer::ready(int use) {
  const auto u = static_cast<std::size_t>(use);
  BegunPass& pass = passes_.at(current_);
  if (pass.use_ready[u]) throw std::logic_error("a gradient was ready twice in one pass");
  pass.use_ready[u] = true;
  for (const auto& [left, right] : pass.merges) backend_.add(view(left, u), view(right, u), view(left, u));
  if (!last_ || current_ + 1 != passes_.size()) return;
  if (--missing_[static_cast<std::size_t>(layout_.use_buckets[u])] == 0) start_complete();
}

void Reducer::start_complete() {
  while (started_ < static_cast<int>(works_.size()) && missing_[static_cast<std::size_t>(started_)] == 0) {
    start(started_++);
  }
}

void Reducer::start(int b) {
  const Bucket& bucket = layout_.buckets[static_cast<std::size_t>(b)];
  auto& nodes = nodes_[static_cast<std::size_t>(b)];
  nodes.clear();
  for (const auto& entry : pending_.entries()) nodes.push_back(at(entry.value, bucket.offset));
  backend_.synchronize();
  works_[static_cast<std::size_t>(b)] =
      group_.tree_all_reduce(bucket.dtype, shares_, nodes, bucket.elements, at(0, bucket.offset));
}

void Reducer::progress() {
  for (int b = 0; b < started_; ++b) {
    if (const auto& work = works_[static_cast<std::size_t>(b)]) work->done();
  }
}

void Reducer::wait(int b) {
  if (b >= started_) throw std::logic_error("a bucket is waited for whose gradients weren't all ready");
  auto& work = works_[static_cast<std::size_t>(b)];
  work->wait();
  work.reset();
}

void* Reducer::at(int copy, std::int64_t offset) const {
  return copies_[static_cast<std::size_t>(copy)].data() + offset;
}

Tensor Reducer::view(int copy, std::size_t use) const {
  const Bucket& bucket = layout_.buckets[static_cast<std::size_t>(layout_.use_buckets[use])];
  return {at(copy, layout_.use_offsets[use]), bucket.dtype, {layout_.use_elements[use]}};
}

/// The lowest free copy, so that the leftmost node is always in copy 0.
int Reducer::take_copy() {
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  const auto copy = free - taken_.begin();
  if (free == taken_.end()) add_copy();
  taken_[static_cast<std::size_t>(copy)] = true;
  return static_cast<int>(copy);
}

void Reducer::add_copy() {
  copies_.push_back(backend_.allocate(static_cast<std::size_t>(std::max<std::int64_t>(layout_.bytes, 1))));
  taken_.push_back(false);
  const int copy = static_cast<int>(copies_.size()) - 1;
  for (const Bucket& bucket : layout_.buckets)
    backend_.fill({at(copy, bucket.offset), bucket.dtype, {bucket.elements}}, 0.0);
}

}  // namespace rankine
