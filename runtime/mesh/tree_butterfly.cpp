#include "runtime/mesh/tree_butterfly.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace rankine {

TreeButterfly::TreeButterfly(std::shared_ptr<MpiGroup> group, TreeSum sum, Exchange exchange)
    : group_(std::move(group)),
      sum_(std::move(sum)),
      exchange_(exchange),
      levels_(std::bit_width(static_cast<unsigned>(group_->size())) - 1),
      element_(static_cast<std::int64_t>(size_of(sum_.dtype))) {
  const auto chunk = std::max<std::int64_t>(1, static_cast<std::int64_t>(group_->sizes().chunk) / element_);
  length_ = exchange_ == Exchange::whole ? sum_.count : std::min(sum_.count, 2 * chunk);
  received_ = exchange_ == Exchange::whole ? length_ : (length_ + 1) / 2;
  total_ = sum_.count == 0 ? 0 : (sum_.count + length_ - 1) / length_;
  const auto window = std::min(static_cast<std::int64_t>(k_window), total_);
  inbox_ = group_->pool().take(static_cast<std::size_t>(window * received_ * element_));
}

TreeButterfly::~TreeButterfly() {
  for (auto& segment : segments_) segment.reset();  // before the memory that they receive into
  group_->pool().give_back(std::move(inbox_));
}

std::byte* TreeButterfly::inbox(const Segment& segment) const {
  return inbox_.data() + segment.index % static_cast<std::int64_t>(k_window) * received_ * element_;
}

Range TreeButterfly::half(Range whole, int level, bool own) const {
  if (exchange_ == Exchange::whole) return whole;
  const bool upper = ((group_->rank() >> level) & 1) != 0;
  const std::int64_t middle = whole.begin + whole.size() / 2;
  return upper == own ? Range{middle, whole.end} : Range{whole.begin, middle};
}

void TreeButterfly::start(std::int64_t index) {
  auto& segment = segments_[static_cast<std::size_t>(index) % k_window];
  if (!segment) segment = std::make_unique<Segment>(*group_);
  segment->index = index;
  segment->step = 0;
  segment->halved.clear();
  segment->mine = {index * length_, std::min(sum_.count, (index + 1) * length_)};
  post(*segment);
}

void TreeButterfly::post(Segment& segment) {
  const auto bytes = [&](Range r) { return static_cast<std::size_t>(r.size() * element_); };
  const bool adding = segment.step < levels_;
  const int level = adding ? segment.step : 2 * levels_ - 1 - segment.step;
  const int partner = group_->rank() ^ (1 << level);
  const int tag = group_->tag(sum_.sequence, sum_.call, adding ? 0 : 1);
  if (adding) {
    const Range given = half(segment.mine, level, false);
    segment.requests.receive(inbox(segment), bytes(half(segment.mine, level, true)), partner, tag);
    segment.requests.send(sum_.nodes[0] + given.begin * element_, bytes(given), partner, tag);
  } else {
    const Range theirs = half(segment.halved[static_cast<std::size_t>(level)], level, false);
    segment.requests.receive(sum_.result + theirs.begin * element_, bytes(theirs), partner, tag);
    segment.requests.send(sum_.result + segment.mine.begin * element_, bytes(segment.mine), partner, tag);
  }
}

void TreeButterfly::finish_step(Segment& segment) {
  if (segment.step < levels_) {
    const int level = segment.step;
    segment.halved.push_back(segment.mine);
    segment.mine = half(segment.mine, level, true);
    std::byte* const own = sum_.nodes[0] + segment.mine.begin * element_;
    std::byte* const out = level + 1 == levels_ ? sum_.result + segment.mine.begin * element_ : own;
    const bool is_right = ((group_->rank() >> level) & 1) != 0;
    const std::byte* const theirs = inbox(segment);
    add_elements(sum_.dtype, out, is_right ? theirs : own, is_right ? own : theirs, segment.mine.size());
  } else {
    segment.mine = segment.halved[static_cast<std::size_t>(2 * levels_ - 1 - segment.step)];
  }
  ++segment.step;
}

bool TreeButterfly::advance() {
  bool moved = true;
  while (moved) {
    moved = false;
    while (next_ < total_ && next_ < oldest_ + static_cast<std::int64_t>(k_window)) start(next_++);
    // A segment never overtakes the one before it: partners must post their messages in the same order.
    int furthest = steps();
    for (std::int64_t i = oldest_; i < next_; ++i) {
      Segment& segment = segment_at(i);
      while (segment.step < furthest && segment.requests.done()) {
        finish_step(segment);
        moved = true;
        if (segment.step < steps()) post(segment);
      }
      furthest = segment.step;
    }
    while (oldest_ < next_ && segment_at(oldest_).step == steps()) ++oldest_;
  }
  return oldest_ == total_;
}

std::vector<int> TreeButterfly::unheard() const {
  std::vector<int> ranks;
  for (const auto& segment : segments_) {
    if (!segment) continue;
    const auto more = segment->requests.unheard();
    ranks.insert(ranks.end(), more.begin(), more.end());
  }
  return ranks;
}

}  // namespace rankine
