#include "runtime/data/batch_loader.hpp"

#include <cassert>

namespace rankine {

BatchLoader::BatchLoader(BatchReader reader, std::int64_t first_step, std::int64_t last_step)
    : reader_(std::move(reader)),
      next_to_read_(first_step),
      next_to_give_(first_step),
      last_step_(last_step),
      thread_([this] { run(); }) {}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BatchLoader::run() {
  for (; next_to_read_ <= last_step_; ++next_to_read_) {
    Slot& slot = slots_[static_cast<std::size_t>(next_to_read_ % 2)];
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || slot.step == 0; });
      if (stop_) return;
    }
    try {
      reader_.read(next_to_read_, slot.memory);
    } catch (...) {
      slot.error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      slot.step = next_to_read_;
    }
    changed_.notify_all();
    if (slot.error) return;
  }
}

const Batch& BatchLoader::next() {
  assert(next_to_give_ <= last_step_);
  Slot& used = slots_[static_cast<std::size_t>((next_to_give_ + 1) % 2)];
  Slot& wanted = slots_[static_cast<std::size_t>(next_to_give_ % 2)];
  std::unique_lock lock(mutex_);
  if (used.step == next_to_give_ - 1 && !used.error) {
    used.step = 0;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return wanted.step == next_to_give_; });
  if (wanted.error) std::rethrow_exception(wanted.error);
  ++next_to_give_;
  return wanted.memory.batch;
}

}  // namespace rankine
