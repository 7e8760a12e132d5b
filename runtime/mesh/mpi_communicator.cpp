#include "runtime/mesh/mpi_communicator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/mesh/communicator_checks.hpp"
#include "runtime/mesh/mpi_error.hpp"
#include "runtime/mesh/mpi_work.hpp"
#include "runtime/mesh/self_communicator.hpp"
#include "runtime/mesh/tree_butterfly.hpp"

namespace rankine {
namespace {

/// A collective that is one set of requests.
class RequestsOperation final : public Operation {
 public:
  explicit RequestsOperation(const MpiGroup& group) : requests_(group.requests()) {}
  bool advance() override { return requests_.done(); }
  std::vector<int> unheard() const override { return requests_.unheard(); }
  Requests& requests() { return requests_; }

 private:
  Requests requests_;
};

/// Exact in any order: NaN wins with one payload, and of two zeros the one that max or min means wins.
template <bool is_max>
double extreme(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) == is_max ? b : a;
  return (a > b) == is_max ? a : b;
}

template <bool is_max>
void reduce_doubles(void* in, void* in_out, int* count, MPI_Datatype*) {
  const auto* from = static_cast<const double*>(in);
  auto* to = static_cast<double*>(in_out);
  for (int i = 0; i < *count; ++i) to[i] = extreme<is_max>(from[i], to[i]);
}

OpHandle make_op(MPI_User_function* function) {
  MPI_Op op = MPI_OP_NULL;
  check_mpi(MPI_Op_create(function, 1, &op), "MPI_Op_create");
  return OpHandle(op);
}

MPI_Op op_for_integers(ReduceOp op) {
  switch (op) {
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::sum:
      break;
  }
  return MPI_SUM;
}

/// Pieces for a sum that all ranks want: even, and on cache lines.
std::vector<Range> even_pieces(std::int64_t count, int ranks) {
  constexpr std::int64_t k_line = 16;
  auto pieces = split_evenly((count + k_line - 1) / k_line, ranks);
  for (auto& piece : pieces)
    piece = {std::min(count, piece.begin * k_line), std::min(count, piece.end * k_line)};
  return pieces;
}

/// The same on all members, different for different groups.
std::uint64_t child_id(std::uint64_t parent, std::uint64_t child, int colour) {
  std::uint64_t id = parent;
  for (const std::uint64_t part : {child, static_cast<std::uint64_t>(colour)}) {
    id = (id ^ part) * 0x9e3779b97f4a7c15u;
    id ^= id >> 29;
  }
  return id;
}

}  // namespace

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiGroup> group) : group_(std::move(group)) {}

std::string MpiCommunicator::member(int rank) const {
  return group_->job()->name_rank(group_->world_rank(rank));
}

WorkHandle MpiCommunicator::launch(std::uint64_t sequence, Call call, std::unique_ptr<Operation> operation) {
  return std::make_unique<MpiWork>(group_, group_->launch(sequence, call, std::move(operation)));
}

TreeSum MpiCommunicator::tree_sum(Collective collective, DType dtype, const TreeShares& shares,
                                  std::span<void* const> nodes, std::int64_t count, void* result) {
  check_tree_sum(*this, dtype, shares, nodes.size(), count);
  TreeSum sum;
  sum.plan = group_->plan(shares);
  sum.call = {collective, static_cast<std::uint64_t>(count) * size_of(dtype)};
  sum.sequence = group_->enter(sum.call);
  sum.dtype = dtype;
  sum.count = count;
  sum.result = static_cast<std::byte*>(result);
  for (void* node : nodes) sum.nodes.push_back(static_cast<std::byte*>(node));
  return sum;
}

WorkHandle MpiCommunicator::tree_all_reduce(DType dtype, const TreeShares& shares,
                                            std::span<void* const> nodes, std::int64_t count, void* result) {
  TreeSum sum = tree_sum(Collective::tree_all_reduce, dtype, shares, nodes, count, result);
  const std::uint64_t sequence = sum.sequence;
  const Call call = sum.call;
  const std::size_t bytes = call.bytes;
  if (sum.plan->butterfly) {
    const auto exchange =
        bytes <= group_->sizes().direct ? TreeButterfly::Exchange::whole : TreeButterfly::Exchange::halves;
    return launch(sequence, call, std::make_unique<TreeButterfly>(group_, std::move(sum), exchange));
  }
  // Whole nodes to everybody are worth it only while the nodes of all ranks together stay small.
  const bool is_short = bytes <= group_->sizes().direct &&
                        bytes * static_cast<std::size_t>(sum.plan->nodes()) <= 8 * group_->sizes().direct;
  auto pieces = is_short ? std::vector<Range>(static_cast<std::size_t>(size()), Range{0, count})
                         : even_pieces(count, size());
  return launch(
      sequence, call,
      std::make_unique<TreeExchange>(group_, std::move(sum), std::move(pieces),
                                     is_short ? TreeExchange::Then::keep_piece : TreeExchange::Then::gather));
}

WorkHandle MpiCommunicator::tree_reduce_scatter(DType dtype, const TreeShares& shares,
                                                std::span<void* const> nodes, std::int64_t count,
                                                void* result, std::span<const Range> pieces) {
  check_pieces(*this, pieces, count);
  TreeSum sum = tree_sum(Collective::tree_reduce_scatter, dtype, shares, nodes, count, result);
  const std::uint64_t sequence = sum.sequence;
  const Call call = sum.call;
  return launch(
      sequence, call,
      std::make_unique<TreeExchange>(group_, std::move(sum), std::vector<Range>(pieces.begin(), pieces.end()),
                                     TreeExchange::Then::keep_piece));
}

WorkHandle MpiCommunicator::gather_bytes(std::uint64_t sequence, Call call, int phase, std::byte* data,
                                         std::span<const Range> pieces) {
  auto operation = std::make_unique<RequestsOperation>(*group_);
  const int tag = group_->tag(sequence, call, phase);
  const Range mine = pieces[static_cast<std::size_t>(rank())];
  for (int step = 1; step < size(); ++step) {
    const int from = (rank() - step + size()) % size();
    const Range theirs = pieces[static_cast<std::size_t>(from)];
    operation->requests().receive(data + theirs.begin, static_cast<std::size_t>(theirs.size()), from, tag);
  }
  for (int step = 1; step < size(); ++step) {
    operation->requests().send(data + mine.begin, static_cast<std::size_t>(mine.size()),
                               (rank() + step) % size(), tag);
  }
  return launch(sequence, call, std::move(operation));
}

WorkHandle MpiCommunicator::all_gather(DType dtype, void* data, std::span<const Range> pieces) {
  check_pieces(*this, pieces, -1);
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  std::vector<Range> bytes;
  Call call{Collective::all_gather};
  for (const Range piece : pieces) {
    bytes.push_back({piece.begin * element, piece.end * element});
    call.bytes += static_cast<std::uint64_t>(bytes.back().size());
  }
  return gather_bytes(group_->enter(call), call, 0, static_cast<std::byte*>(data), bytes);
}

WorkHandle MpiCommunicator::all_reduce(void* data, std::size_t count, std::size_t element, MPI_Datatype type,
                                       MPI_Op op) {
  const Call call{Collective::all_reduce, count * element};
  const std::uint64_t sequence = group_->enter(call);
  auto operation = std::make_unique<RequestsOperation>(*group_);
  const std::size_t most = std::max<std::size_t>(1, group_->sizes().longest / element);
  for (std::size_t at = 0; at < count; at += most) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(
        MPI_Iallreduce(MPI_IN_PLACE, static_cast<std::byte*>(data) + at * element,
                       static_cast<int>(std::min(most, count - at)), type, op, group_->comm(), &request),
        "MPI_Iallreduce");
    operation->requests().adopt(request);
  }
  return launch(sequence, call, std::move(operation));
}

WorkHandle MpiCommunicator::all_reduce(std::span<std::int64_t> data, ReduceOp op) {
  return all_reduce(data.data(), data.size(), sizeof(std::int64_t), MPI_INT64_T, op_for_integers(op));
}

WorkHandle MpiCommunicator::all_reduce(std::span<double> data, ReduceOp op) {
  check_double_reduce(*this, op);
  OpHandle& handle = op == ReduceOp::max ? double_max_ : double_min_;
  if (!handle) handle = make_op(op == ReduceOp::max ? reduce_doubles<true> : reduce_doubles<false>);
  return all_reduce(data.data(), data.size(), sizeof(double), MPI_DOUBLE, handle.get());
}

WorkHandle MpiCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  check_root(*this, root);
  const Call call{Collective::broadcast, bytes};
  const std::uint64_t sequence = group_->enter(call);
  auto operation = std::make_unique<RequestsOperation>(*group_);
  for (std::size_t at = 0; at < bytes; at += group_->sizes().longest) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibcast(static_cast<std::byte*>(data) + at,
                         static_cast<int>(std::min(group_->sizes().longest, bytes - at)), MPI_BYTE, root,
                         group_->comm(), &request),
              "MPI_Ibcast");
    operation->requests().adopt(request);
  }
  return launch(sequence, call, std::move(operation));
}

void MpiCommunicator::barrier() {
  const Call call{Collective::barrier};
  const std::uint64_t sequence = group_->enter(call);
  auto operation = std::make_unique<RequestsOperation>(*group_);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(group_->comm(), &request), "MPI_Ibarrier");
  operation->requests().adopt(request);
  launch(sequence, call, std::move(operation))->wait();
}

std::unique_ptr<Communicator> MpiCommunicator::split(int colour, int key, const std::string& name) {
  const Call call{Collective::split};
  const std::uint64_t sequence = group_->enter(call);
  // MPI_Comm_split blocks without a deadline of its own: the watchdog has to look after it.
  const WatchedWait watched(*group_, sequence, call);
  MPI_Comm child = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(group_->comm(), colour < 0 ? MPI_UNDEFINED : colour, key, &child),
            "MPI_Comm_split");
  ++children_;
  if (child == MPI_COMM_NULL) return nullptr;
  auto made = make_communicator(CommHandle(child), group_->job(), name,
                                child_id(group_->id(), children_, colour), group_->sizes());
  made->set_deadline(group_->deadline);
  return made;
}

std::vector<std::string> MpiCommunicator::all_gather_text(const std::string& text) {
  const Call call{Collective::all_gather_text};
  const std::uint64_t sequence = group_->enter(call);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(size()));
  sizes[static_cast<std::size_t>(rank())] = static_cast<std::int64_t>(text.size());
  std::vector<Range> pieces;
  for (std::int64_t r = 0; r < size(); ++r) pieces.push_back({r * 8, r * 8 + 8});
  gather_bytes(sequence, call, 0, reinterpret_cast<std::byte*>(sizes.data()), pieces)->wait();
  std::int64_t at = 0;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    pieces[r] = {at, at + sizes[r]};
    at += sizes[r];
  }
  std::string all(static_cast<std::size_t>(at), ' ');
  std::copy(text.begin(), text.end(), all.begin() + pieces[static_cast<std::size_t>(rank())].begin);
  gather_bytes(sequence, call, 1, reinterpret_cast<std::byte*>(all.data()), pieces)->wait();
  std::vector<std::string> texts;
  for (const Range piece : pieces) {
    texts.push_back(
        all.substr(static_cast<std::size_t>(piece.begin), static_cast<std::size_t>(piece.size())));
  }
  return texts;
}

std::unique_ptr<Communicator> make_communicator(CommHandle comm, std::shared_ptr<const Job> job,
                                                std::string name, std::uint64_t id, MessageSizes sizes) {
  int size = 0;
  check_mpi(MPI_Comm_size(comm.get(), &size), "MPI_Comm_size");
  if (size == 1) return std::make_unique<SelfCommunicator>(std::move(name), job->name_rank(job->rank));
  return std::make_unique<MpiCommunicator>(
      std::make_shared<MpiGroup>(std::move(comm), std::move(job), std::move(name), id, sizes));
}

MPI_Comm mpi_comm_of(const Communicator& group) {
  const auto* behind = dynamic_cast<const MpiCommunicator*>(&group);
  return behind != nullptr ? behind->handle() : MPI_COMM_SELF;
}

}  // namespace rankine
