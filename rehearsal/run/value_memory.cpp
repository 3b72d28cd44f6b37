#include "rehearsal/run/value_memory.hpp"

#include <fmt/format.h>

#include "properties/finding.hpp"

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

std::string text_of_exceeded(const ValueMemory& memory, const Sites& sites) {
  return fmt::format(
      "the values of this run take more than {} of memory, at {}; use smaller tensors or fewer "
      "ranks, or allow more: --value-memory SIZE",
      bytes_text(memory.most().count()), sites.place(memory.exceeded_at()));
}

}  // namespace lockstep::cli
