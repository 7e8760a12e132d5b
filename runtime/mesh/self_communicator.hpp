#pragma once

#include <memory>
#include <string>

#include "runtime/mesh/communicator.hpp"

namespace rankine {

/// A group of one rank: everything is done at once, without MPI, also where MPI isn't running.
class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(std::string name, std::string member = "rank 0");

  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& name() const override { return name_; }
  std::string member(int) const override { return member_; }

  WorkHandle tree_all_reduce(DType dtype, const TreeShares& shares, std::span<void* const> nodes,
                             std::int64_t count, void* result) override;
  WorkHandle tree_reduce_scatter(DType dtype, const TreeShares& shares, std::span<void* const> nodes,
                                 std::int64_t count, void* result, std::span<const Range> pieces) override;
  WorkHandle all_gather(DType dtype, void* data, std::span<const Range> pieces) override;
  WorkHandle all_reduce(std::span<std::int64_t> data, ReduceOp op) override;
  WorkHandle all_reduce(std::span<double> data, ReduceOp op) override;
  WorkHandle broadcast(void* data, std::size_t bytes, int root) override;
  void barrier() override;
  std::unique_ptr<Communicator> split(int colour, int key, const std::string& name) override;
  std::vector<std::string> all_gather_text(const std::string& text) override { return {text}; }
  void set_deadline(std::chrono::milliseconds) override {}

 private:
  WorkHandle finished();

  std::string name_;
  std::string member_;
  std::uint64_t sequence_ = 0;
};

}  // namespace rankine
