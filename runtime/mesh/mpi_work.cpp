#include "runtime/mesh/mpi_work.hpp"

#include <cstdio>
#include <exception>
#include <utility>

namespace rankine {

MpiWork::MpiWork(std::shared_ptr<MpiGroup> group, std::shared_ptr<Flight> flight)
    : group_(std::move(group)), flight_(std::move(flight)), exceptions_(std::uncaught_exceptions()) {}

MpiWork::~MpiWork() {
  if (flight_->finished()) return;
  // While an error unwinds, peers may never come: give those that do (an agreed error) a moment, no more.
  const bool unwinding = std::uncaught_exceptions() > exceptions_;
  const auto patience = unwinding ? std::chrono::milliseconds(1000) : group_->deadline;
  try {
    if (!group_->is_broken()) group_->wait(*flight_, patience);
  } catch (const std::exception& e) {
    if (!unwinding) std::fprintf(stderr, "%s\n", e.what());
  }
  if (!flight_->finished()) group_->abandon(*flight_);
}

bool MpiWork::done() {
  if (!flight_->finished()) group_->advance();
  if (flight_->error) std::rethrow_exception(flight_->error);
  return flight_->finished();
}

void MpiWork::wait() {
  group_->wait(*flight_, group_->deadline);
}

}  // namespace rankine
