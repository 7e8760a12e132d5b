#include "runtime/mesh/tree_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rankine {

TreeExchange::TreeExchange(std::shared_ptr<MpiGroup> group, TreeSum sum, std::vector<Range> pieces, Then then)
    : group_(std::move(group)),
      sum_(std::move(sum)),
      pieces_(std::move(pieces)),
      then_(then),
      element_(static_cast<std::int64_t>(size_of(sum_.dtype))) {
  std::int64_t longest = 0;
  for (const Range piece : pieces_) longest = std::max(longest, piece.size());
  // Every rank must cut alike, so only what all know counts. All received chunks of a round should fit in the
  // cache together.
  const auto nodes = static_cast<std::int64_t>(sum_.plan->nodes());
  const auto chunk_bytes = static_cast<std::int64_t>(group_->sizes().chunk);
  const std::int64_t for_cache =
      std::max(chunk_bytes / 8, 2 * chunk_bytes / std::max<std::int64_t>(nodes, 1));
  chunk_ = std::max<std::int64_t>(1, std::min(chunk_bytes, for_cache) / element_);
  chunk_ = std::min(chunk_, std::max<std::int64_t>(longest, 1));
  total_rounds_ = (longest + chunk_ - 1) / chunk_;
  const std::int64_t foreign = nodes - sum_.plan->nodes_of(group_->rank());
  const auto window = std::min(static_cast<std::int64_t>(k_window), total_rounds_);
  inbox_ = group_->pool().take(static_cast<std::size_t>(window * foreign * chunk_ * element_));
  values_.resize(static_cast<std::size_t>(nodes));
}

TreeExchange::~TreeExchange() {
  for (auto& round : rounds_) round.reset();  // before the memory that they receive into
  group_->pool().give_back(std::move(inbox_));
}

Range TreeExchange::chunk_of(int rank, std::int64_t round) const {
  const Range piece = pieces_[static_cast<std::size_t>(rank)];
  return {std::min(piece.end, piece.begin + round * chunk_),
          std::min(piece.end, piece.begin + (round + 1) * chunk_)};
}

std::byte* TreeExchange::received(const Round& round, int node) const {
  const int mine = sum_.plan->nodes_of(group_->rank());
  const int first = sum_.plan->first_node[static_cast<std::size_t>(group_->rank())];
  const std::int64_t slot = node < first ? node : node - mine;
  const std::int64_t foreign = sum_.plan->nodes() - mine;
  const std::int64_t lane = round.index % static_cast<std::int64_t>(k_window);
  return inbox_.data() + (lane * foreign + slot) * chunk_ * element_;
}

void TreeExchange::start_exchange(Round& round) {
  const auto bytes = [&](Range r) { return static_cast<std::size_t>(r.size() * element_); };
  const int me = group_->rank();
  const int tag = group_->tag(sum_.sequence, sum_.call, 0);
  const Range mine = chunk_of(me, round.index);
  // Everyone starts with its right neighbour, so that not all send to the same rank at once.
  for (int step = 1; step < group_->size(); ++step) {
    const int from = (me - step + group_->size()) % group_->size();
    const int first = sum_.plan->first_node[static_cast<std::size_t>(from)];
    for (int node = first; node < first + sum_.plan->nodes_of(from); ++node) {
      round.requests.receive(received(round, node), bytes(mine), from, tag);
    }
  }
  for (int step = 1; step < group_->size(); ++step) {
    const int to = (me + step) % group_->size();
    const Range theirs = chunk_of(to, round.index);
    for (const std::byte* node : sum_.nodes) {
      round.requests.send(node + theirs.begin * element_, bytes(theirs), to, tag);
    }
  }
  round.phase = Phase::exchanging;
}

void TreeExchange::add(const Round& round) {
  const int me = group_->rank();
  const Range mine = chunk_of(me, round.index);
  const auto bytes = static_cast<std::size_t>(mine.size() * element_);
  std::byte* const result = sum_.result + mine.begin * element_;
  if (bytes == 0) return;
  if (sum_.plan->nodes() == 0) {  // a sum of nothing
    std::memset(result, 0, bytes);
    return;
  }
  const int first = sum_.plan->first_node[static_cast<std::size_t>(me)];
  for (int node = 0; node < sum_.plan->nodes(); ++node) {
    const int own = node - first;
    const bool is_own = own >= 0 && own < sum_.plan->nodes_of(me);
    values_[static_cast<std::size_t>(node)] =
        is_own ? sum_.nodes[static_cast<std::size_t>(own)] + mine.begin * element_ : received(round, node);
  }
  const auto value = [&](int node) { return values_[static_cast<std::size_t>(node)]; };
  const auto& steps = sum_.plan->steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::byte* const out = i + 1 == steps.size() ? result : value(steps[i].left);
    add_elements(sum_.dtype, out, value(steps[i].left), value(steps[i].right), mine.size());
  }
  if (steps.empty() && result != value(sum_.plan->root)) {
    std::memcpy(result, value(sum_.plan->root), bytes);
  }
}

void TreeExchange::start_gather(Round& round) {
  const auto bytes = [&](Range r) { return static_cast<std::size_t>(r.size() * element_); };
  const int me = group_->rank();
  const int tag = group_->tag(sum_.sequence, sum_.call, 1);
  const Range mine = chunk_of(me, round.index);
  for (int step = 1; step < group_->size(); ++step) {
    const int from = (me - step + group_->size()) % group_->size();
    const Range theirs = chunk_of(from, round.index);
    round.requests.receive(sum_.result + theirs.begin * element_, bytes(theirs), from, tag);
  }
  for (int step = 1; step < group_->size(); ++step) {
    const int to = (me + step) % group_->size();
    round.requests.send(sum_.result + mine.begin * element_, bytes(mine), to, tag);
  }
  round.phase = Phase::gathering;
}

bool TreeExchange::advance() {
  bool moved = true;
  while (moved) {
    moved = false;
    while (next_round_ < total_rounds_ && next_round_ < oldest_round_ + static_cast<std::int64_t>(k_window)) {
      auto& round = rounds_[static_cast<std::size_t>(next_round_) % k_window];
      if (!round) round = std::make_unique<Round>(*group_);
      round->index = next_round_++;
      start_exchange(*round);
    }
    // In order: all ranks must post the messages of a pair in the same order.
    bool all_gathering = true;
    for (std::int64_t i = oldest_round_; i < next_round_ && all_gathering; ++i) {
      Round& round = round_at(i);
      if (round.phase == Phase::exchanging && round.requests.done()) {
        add(round);
        // Even where nothing is gathered the phase exists: it ends at once.
        round.phase = Phase::gathering;
        if (then_ == Then::gather) start_gather(round);
      }
      all_gathering = round.phase == Phase::gathering;
    }
    while (oldest_round_ < next_round_ && round_at(oldest_round_).phase == Phase::gathering &&
           round_at(oldest_round_).requests.done()) {
      round_at(oldest_round_++).phase = Phase::idle;
      moved = true;
    }
  }
  return oldest_round_ == total_rounds_;
}

std::vector<int> TreeExchange::unheard() const {
  std::vector<int> ranks;
  for (const auto& round : rounds_) {
    if (!round) continue;
    const auto more = round->requests.unheard();
    ranks.insert(ranks.end(), more.begin(), more.end());
  }
  return ranks;
}

}  // namespace rankine
