#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "model/core/site.hpp"
#include "model/core/values.hpp"

namespace lockstep {

/// The values of a run would take more memory of this machine than its budget allows.
class ValueBudgetExceeded : public std::runtime_error {
 public:
  ValueBudgetExceeded() : std::runtime_error("the values of the run exceed their budget") {}
};

/// Bounds the memory that the values of a run take on this machine, whatever the simulated devices
/// hold, and knows which statement was executed last. Ranks may be threads.
class ValueBudget {
 public:
  explicit ValueBudget(Bytes most) : most_(most) {}
  ValueBudget(const ValueBudget&) = delete;
  ValueBudget& operator=(const ValueBudget&) = delete;

  /// Bytes that count until this object goes.
  class Charge {
   public:
    Charge() = default;
    Charge(std::shared_ptr<ValueBudget> budget, Bytes bytes)
        : budget_(std::move(budget)), bytes_(bytes) {}
    Charge(Charge&& other) noexcept = default;
    Charge& operator=(Charge&&) = delete;
    Charge(const Charge&) = delete;
    ~Charge() {
      if (budget_ != nullptr) {
        budget_->held_.fetch_sub(bytes_.count(), std::memory_order_relaxed);
      }
    }

   private:
    std::shared_ptr<ValueBudget> budget_;
    Bytes bytes_{};
  };

  /// Charges `budget` (null: unlimited). Throws ValueBudgetExceeded, and remembers it.
  static Charge charge(const std::shared_ptr<ValueBudget>& budget, Bytes bytes);

  /// Forgets what was exceeded. Values that are still held count on.
  void begin_run();
  void executing(SiteId site) { site_.store(site.value, std::memory_order_relaxed); }
  SiteId executing() const { return SiteId{site_.load(std::memory_order_relaxed)}; }

  Bytes most() const { return most_; }
  Bytes held() const { return Bytes(held_.load(std::memory_order_relaxed)); }
  bool exceeded() const { return exceeded_.load(std::memory_order_relaxed); }
  /// The statement that was executed when it was exceeded first, or none.
  SiteId exceeded_at() const { return SiteId{exceeded_at_.load(std::memory_order_relaxed)}; }

 private:
  Bytes most_;
  std::atomic<int64_t> held_ = 0;
  std::atomic<uint32_t> site_ = 0;
  std::atomic<bool> exceeded_ = false;
  std::atomic<uint32_t> exceeded_at_ = 0;
};

/// Values that count against a budget until their last holder lets them go. `make` is called once
/// the bytes are charged.
template <class Make>
std::shared_ptr<Values> charged(const std::shared_ptr<ValueBudget>& budget, Bytes bytes,
                                const Make& make) {
  struct Held {
    ValueBudget::Charge charge;
    Values values;
  };
  ValueBudget::Charge charge = ValueBudget::charge(budget, bytes);
  auto held = std::make_shared<Held>(Held{std::move(charge), make()});
  Values* const values = &held->values;
  return std::shared_ptr<Values>(std::move(held), values);
}

}  // namespace lockstep
