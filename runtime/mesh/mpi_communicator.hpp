#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "runtime/mesh/communicator.hpp"
#include "runtime/mesh/mpi_group.hpp"
#include "runtime/mesh/tree_exchange.hpp"

namespace rankine {

/// The ranks of one MPI communicator of its own. For groups of at least two; see make_communicator.
class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(std::shared_ptr<MpiGroup> group);

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->name(); }
  std::string member(int rank) const override;

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
  std::vector<std::string> all_gather_text(const std::string& text) override;
  void set_deadline(std::chrono::milliseconds deadline) override { group_->deadline = deadline; }

  /// The same on all ranks, while nothing is in flight.
  void set_message_sizes(MessageSizes sizes) { group_->set_sizes(sizes); }
  MPI_Comm handle() const { return group_->comm(); }

 private:
  TreeSum tree_sum(Collective collective, DType dtype, const TreeShares& shares, std::span<void* const> nodes,
                   std::int64_t count, void* result);
  WorkHandle launch(std::uint64_t sequence, Call call, std::unique_ptr<Operation> operation);
  WorkHandle all_reduce(void* data, std::size_t count, std::size_t element, MPI_Datatype type, MPI_Op op);
  WorkHandle gather_bytes(std::uint64_t sequence, Call call, int phase, std::byte* data,
                          std::span<const Range> pieces);

  std::shared_ptr<MpiGroup> group_;
  std::uint64_t children_ = 0;
  OpHandle double_max_;
  OpHandle double_min_;
};

/// A communicator over `comm`, which it owns: an MpiCommunicator, or a group of one that needs no MPI.
std::unique_ptr<Communicator> make_communicator(CommHandle comm, std::shared_ptr<const Job> job,
                                                std::string name, std::uint64_t id, MessageSizes sizes = {});

/// The MPI communicator behind a group, for libraries that need one (parallel HDF5). The group keeps it.
MPI_Comm mpi_comm_of(const Communicator& group);

}  // namespace rankine
