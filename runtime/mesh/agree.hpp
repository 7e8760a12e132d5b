#pragma once

#include <functional>

#include "runtime/mesh/communicator.hpp"

namespace rankine {

class World;

/// Runs `act` on every rank of `group` and agrees on the outcome: if it threw on any rank, every rank throws
/// the same error: the one of the lowest failing rank, with its exit code, and with "[rank 3 @ host] " in
/// front of the text when it didn't fail everywhere with the same text. Collective. Whatever can fail on one
/// rank only (reading a file, allocating, checking) goes through here, so that no rank waits in a collective
/// for one that threw. An exception that isn't a rankine::Error is reported with exit code 70.
void agree(Communicator& group, const std::function<void()>& act);

/// What `main` does on every rank: runs `body`, returns its exit code, and is the one place that catches. An
/// error that all ranks share (an agreed one) is printed once and its exit code returned, so that MPI ends in
/// good order. An error that others don't share ends the job on the spot: they may be waiting for this rank.
int run_ranks(World& world, const std::function<int()>& body);

}  // namespace rankine
