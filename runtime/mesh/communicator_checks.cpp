#include "runtime/mesh/communicator_checks.hpp"

#include "runtime/error.hpp"

namespace rankine {
namespace {

[[noreturn]] void refuse(const Communicator& group, const std::string& what) {
  throw CommunicationError("group '" + group.name() + "' of " + std::to_string(group.size()) +
                           " ranks: " + what);
}

std::string text_of(Range range) {
  return "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

}  // namespace

void check_tree_sum(const Communicator& group, DType dtype, const TreeShares& shares, std::size_t nodes,
                    std::int64_t count) {
  if (!is_floating(dtype)) refuse(group, "tree sums add float32 or float64, not int32");
  if (count < 0) refuse(group, "a tree sum of " + std::to_string(count) + " elements");
  if (shares.runs.size() != static_cast<std::size_t>(group.size())) {
    refuse(group, "a tree sum was given the runs of " + std::to_string(shares.runs.size()) + " ranks");
  }
  const Range run = shares.runs[static_cast<std::size_t>(group.rank())];
  const std::size_t expected = canonical_nodes(run, shares.leaves).size();
  if (nodes != expected) {
    refuse(group, "rank " + std::to_string(group.rank()) + " brings " + std::to_string(nodes) +
                      " nodes to a tree sum; leaves " + text_of(run) + " of " +
                      std::to_string(shares.leaves) + " have " + std::to_string(expected));
  }
}

void check_pieces(const Communicator& group, std::span<const Range> pieces, std::int64_t count) {
  if (pieces.size() != static_cast<std::size_t>(group.size())) {
    refuse(group, std::to_string(pieces.size()) + " pieces were given; there must be one a rank");
  }
  for (const Range piece : pieces) {
    if (piece.begin < 0 || piece.end < piece.begin || (count >= 0 && piece.end > count)) {
      refuse(group, "the piece " + text_of(piece) + " isn't inside the data");
    }
  }
}

void check_double_reduce(const Communicator& group, ReduceOp op) {
  if (op == ReduceOp::sum) {
    refuse(group, "all_reduce doesn't add doubles, since the order would matter: use tree_all_reduce");
  }
}

void check_root(const Communicator& group, int root) {
  if (root < 0 || root >= group.size()) refuse(group, "there is no rank " + std::to_string(root));
}

}  // namespace rankine
