#pragma once

#include <string>

#include "runtime/mesh/communicator.hpp"

/// What every implementation of Communicator refuses. All throw CommunicationError.
namespace rankine {

/// Tree sums: a float type, as many node buffers as the run of this rank has canonical nodes.
void check_tree_sum(const Communicator& group, DType dtype, const TreeShares& shares, std::size_t nodes,
                    std::int64_t count);
/// One piece a rank; inside [0, count) where count isn't negative.
void check_pieces(const Communicator& group, std::span<const Range> pieces, std::int64_t count);
/// Doubles have no exact sum.
void check_double_reduce(const Communicator& group, ReduceOp op);
void check_root(const Communicator& group, int root);

}  // namespace rankine
