#include "model/core/value_budget.hpp"

namespace lockstep {

ValueBudget::Charge ValueBudget::charge(const std::shared_ptr<ValueBudget>& budget, Bytes bytes) {
  if (budget == nullptr) {
    return {};
  }
  const int64_t held = budget->held_.fetch_add(bytes.count(), std::memory_order_relaxed);
  Charge charge(budget, bytes);
  if (held + bytes.count() > budget->most_.count()) {
    if (!budget->exceeded_.exchange(true)) {
      budget->exceeded_at_ = budget->site_.load(std::memory_order_relaxed);
    }
    throw ValueBudgetExceeded();
  }
  return charge;
}

void ValueBudget::begin_run() {
  exceeded_ = false;
  exceeded_at_ = 0;
  site_ = 0;
}

}  // namespace lockstep
