#pragma once

#include <memory>
#include <stdexcept>
#include <utility>

#include "model/core/site.hpp"
#include "model/core/values.hpp"

namespace lockstep {

/// The values of a run would take more memory of this machine than its budget allows.
class ValueBudgetExceeded : public std::runtime_error {
 public:
  ValueBudgetExceeded() : std::runtime_error("the values of the run exceed their budget") {}
};

/// Bounds the memory that the values of a run take on this machine, whatever the simulated devices
/// hold. Ranks may be threads: all members are thread-safe.
class ValueBudget {
 public:
  virtual ~ValueBudget() = default;
  /// Throws ValueBudgetExceeded, and then has taken nothing.
  virtual void take(Bytes bytes) = 0;
  virtual void give_back(Bytes bytes) noexcept = 0;
  /// The statement that is executed now.
  virtual void executing(SiteId site) = 0;
  virtual bool exceeded() const = 0;
};

/// Bytes that count against a budget until this object goes.
class ValueCharge {
 public:
  /// `budget` may be null: unlimited. Throws ValueBudgetExceeded.
  ValueCharge(std::shared_ptr<ValueBudget> budget, Bytes bytes)
      : budget_(std::move(budget)), bytes_(bytes) {
    if (budget_ != nullptr) {
      budget_->take(bytes_);
    }
  }
  ValueCharge(ValueCharge&& other) noexcept = default;
  ValueCharge& operator=(ValueCharge&&) = delete;
  ValueCharge(const ValueCharge&) = delete;
  ValueCharge& operator=(const ValueCharge&) = delete;
  ~ValueCharge() {
    if (budget_ != nullptr) {
      budget_->give_back(bytes_);
    }
  }

 private:
  std::shared_ptr<ValueBudget> budget_;
  Bytes bytes_;
};

/// Values that count against a budget until their last holder lets them go. `make` is called once
/// the bytes are charged.
template <class Make>
std::shared_ptr<Values> charged(const std::shared_ptr<ValueBudget>& budget, Bytes bytes,
                                const Make& make) {
  struct Held {
    ValueCharge charge;
    Values values;
  };
  ValueCharge charge(budget, bytes);
  auto held = std::make_shared<Held>(Held{std::move(charge), make()});
  Values* const values = &held->values;
  return std::shared_ptr<Values>(std::move(held), values);
}

}  // namespace lockstep
