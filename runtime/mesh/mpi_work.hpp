#pragma once

#include <memory>

#include "runtime/mesh/mpi_group.hpp"

namespace rankine {

/// A flight of a group, as its caller holds it.
class MpiWork final : public Work {
 public:
  MpiWork(std::shared_ptr<MpiGroup> group, std::shared_ptr<Flight> flight);
  ~MpiWork() override;
  bool done() override;
  void wait() override;
  std::uint64_t sequence() const override { return flight_->sequence; }

 private:
  std::shared_ptr<MpiGroup> group_;
  std::shared_ptr<Flight> flight_;
  int exceptions_;  // in flight when it was made
};

}  // namespace rankine
