#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runtime/mesh/tree_exchange.hpp"

namespace rankine {

/// The tree sum where plan->butterfly holds: log2(ranks) exchanges with the partner at distance 1, 2, 4, …
/// Each adds one level of the tree. Long sums halve what they exchange at each distance and then collect the
/// halves in reverse; they go in segments, several in flight, so that one is added while another travels.
/// Short ones exchange everything at each distance: half the steps.
class TreeButterfly final : public Operation {
 public:
  enum class Exchange { halves, whole };
  TreeButterfly(std::shared_ptr<MpiGroup> group, TreeSum sum, Exchange exchange);
  ~TreeButterfly() override;
  bool advance() override;
  std::vector<int> unheard() const override;

 private:
  static constexpr std::size_t k_window = 4;
  struct Segment {
    explicit Segment(const MpiGroup& group) : requests(group.requests()) {}
    Requests requests;
    std::int64_t index = 0;
    int step = 0;               // of the exchange in flight; adding steps first, collecting ones after them
    std::vector<Range> halved;  // what this rank was responsible for before each adding step
    Range mine;                 // what it is responsible for now
  };

  int steps() const { return exchange_ == Exchange::whole ? levels_ : 2 * levels_; }
  void start(std::int64_t index);
  void post(Segment& segment);
  void finish_step(Segment& segment);
  /// The halves of what was split at `level`: this rank's and its partner's.
  Range half(Range whole, int level, bool own) const;
  std::byte* inbox(const Segment& segment) const;
  Segment& segment_at(std::int64_t index) { return *segments_[static_cast<std::size_t>(index) % k_window]; }

  std::shared_ptr<MpiGroup> group_;
  TreeSum sum_;
  Exchange exchange_;
  int levels_ = 0;
  std::int64_t element_;       // bytes
  std::int64_t length_ = 1;    // of a segment, in elements
  std::int64_t received_ = 1;  // most elements that a step receives to add
  std::int64_t total_ = 0;
  std::int64_t next_ = 0;
  std::int64_t oldest_ = 0;
  std::array<std::unique_ptr<Segment>, k_window> segments_;
  BufferPool::Buffer inbox_;
};

}  // namespace rankine
