#include "rehearsal/run/value_memory.hpp"

namespace lockstep::cli {

void ValueMemory::take(Bytes bytes) {
  const int64_t held = held_.fetch_add(bytes.count(), std::memory_order_relaxed);
  if (held + bytes.count() <= most_.count()) {
    return;
  }
  give_back(bytes);
  if (!exceeded_.exchange(true)) {
    exceeded_at_ = site_.load(std::memory_order_relaxed);
  }
  throw ValueBudgetExceeded();
}

void ValueMemory::give_back(Bytes bytes) noexcept {
  held_.fetch_sub(bytes.count(), std::memory_order_relaxed);
}

void ValueMemory::begin_run() {
  exceeded_ = false;
  exceeded_at_ = 0;
  site_ = 0;
}

}  // namespace lockstep::cli
