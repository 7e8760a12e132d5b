#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/mesh/communicator.hpp"

namespace rankine::test {

/// A tree sum that some ranks have entered and others not yet.
struct SimulatedSum {
  struct Part {
    std::vector<void*> nodes;
    void* result = nullptr;
  };
  std::string call;
  DType dtype = DType::float32;
  TreeShares shares;
  std::int64_t count = 0;
  std::vector<Part> parts;  ///< by rank
  int arrived = 0;
  bool done = false;

  /// Adds in tree order, gives everyone the sum, and fills the nodes with NaN, as a sum may.
  void run();
};

/// The ranks of a group inside one thread: a test lets one rank after the other enter the collectives, then
/// lets each wait. A sum happens as late as it may, at the first look after all ranks have entered, so memory
/// that is touched too early shows. Throws std::logic_error when the ranks' collectives don't match, or when
/// a wait would block for ever.
class SimulatedGroup {
 public:
  explicit SimulatedGroup(int ranks);
  ~SimulatedGroup();
  Communicator& operator[](int rank);
  int size() const { return static_cast<int>(members_.size()); }
  /// Collectives that all ranks have entered.
  std::size_t sums() const { return sums_.size(); }
  const SimulatedSum& sum(std::size_t i) const { return *sums_[i]; }

 private:
  class Member;
  friend class Member;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::shared_ptr<SimulatedSum>> sums_;
};

}  // namespace rankine::test
