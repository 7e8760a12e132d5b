#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

#include "runtime/data/batch_reader.hpp"

namespace rankine {

/// Reads the batches of a run ahead of the step: while one is in use, the next is read on a thread of its
/// own. Memory for two batches; it doesn't grow after both have been filled once.
class BatchLoader {
 public:
  /// Steps `first_step` to `last_step`, both included. The reader must be used by nothing else meanwhile.
  BatchLoader(BatchReader reader, std::int64_t first_step, std::int64_t last_step);
  /// Waits for a read in flight.
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The next step's batch, valid until the next call. Throws what reading it threw, and so does every later
  /// call. Must not be called more often than there are steps.
  const Batch& next();

 private:
  struct Slot {
    BatchReader::Memory memory;
    std::int64_t step = 0;  ///< 0: free
    std::exception_ptr error;
  };
  void run();

  BatchReader reader_;
  std::int64_t next_to_read_;
  std::int64_t next_to_give_;
  std::int64_t last_step_;
  std::array<Slot, 2> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;  // last: it starts when all else is there
};

}  // namespace rankine
