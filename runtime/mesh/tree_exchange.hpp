#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "runtime/mesh/mpi_group.hpp"

namespace rankine {

/// One tree sum: what is added, and where it goes.
struct TreeSum {
  std::uint64_t sequence = 0;
  Call call;
  DType dtype = DType::float32;
  std::shared_ptr<const TreePlan> plan;
  std::vector<std::byte*> nodes;  ///< this rank's, `count` elements each; overwritten
  std::int64_t count = 0;
  std::byte* result = nullptr;
};

/// The tree sum for any shares. Every rank owns a piece of the elements; it receives that piece of all nodes,
/// adds them in tree order and, where all are to have the result, sends the sum to all. Long pieces go in
/// rounds of chunks, several in flight, so that receiving, adding and sending overlap. Where every rank's
/// piece is the whole, everybody adds everything for himself after a single exchange.
class TreeExchange final : public Operation {
 public:
  enum class Then { keep_piece, gather };
  TreeExchange(std::shared_ptr<MpiGroup> group, TreeSum sum, std::vector<Range> pieces, Then then);
  ~TreeExchange() override;
  bool advance() override;
  std::vector<int> unheard() const override;

 private:
  static constexpr std::size_t k_window = 4;
  enum class Phase { idle, exchanging, gathering };
  struct Round {
    explicit Round(const MpiGroup& group) : requests(group.requests()) {}
    Requests requests;
    Phase phase = Phase::idle;
    std::int64_t index = 0;
  };

  Range chunk_of(int rank, std::int64_t round) const;
  std::byte* received(const Round& round, int node) const;
  void start_exchange(Round& round);
  void add(const Round& round);
  void start_gather(Round& round);
  Round& round_at(std::int64_t index) { return *rounds_[static_cast<std::size_t>(index) % k_window]; }

  std::shared_ptr<MpiGroup> group_;
  TreeSum sum_;
  std::vector<Range> pieces_;
  Then then_;
  std::int64_t element_;    // bytes
  std::int64_t chunk_ = 1;  // elements
  std::int64_t total_rounds_ = 0;
  std::int64_t next_round_ = 0;
  std::int64_t oldest_round_ = 0;
  std::array<std::unique_ptr<Round>, k_window> rounds_;
  BufferPool::Buffer inbox_;
  std::vector<std::byte*> values_;  // of all nodes during add()
};

}  // namespace rankine
