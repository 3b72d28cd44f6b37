#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "model/core/site.hpp"
#include "model/core/value_budget.hpp"

namespace lockstep::cli {

/// The memory that the values of one case may take, and the statement that asked for more.
class ValueMemory final : public ValueBudget {
 public:
  explicit ValueMemory(Bytes most) : most_(most) {}

  void take(Bytes bytes) override;
  void give_back(Bytes bytes) noexcept override;
  void executing(SiteId site) override { site_.store(site.value, std::memory_order_relaxed); }
  bool exceeded() const override { return exceeded_.load(std::memory_order_relaxed); }

  /// Forgets what was exceeded. Values that are still held count on.
  void begin_run();
  Bytes most() const { return most_; }
  Bytes held() const { return Bytes(held_.load(std::memory_order_relaxed)); }
  /// The statement that was executed last, or none.
  SiteId executing() const { return SiteId{site_.load(std::memory_order_relaxed)}; }
  /// The statement that was executed when it was exceeded first, or none.
  SiteId exceeded_at() const { return SiteId{exceeded_at_.load(std::memory_order_relaxed)}; }

 private:
  Bytes most_;
  std::atomic<int64_t> held_ = 0;
  std::atomic<uint32_t> site_ = 0;
  std::atomic<bool> exceeded_ = false;
  std::atomic<uint32_t> exceeded_at_ = 0;
};

/// Why a run that asked for more was given up, where in the scenario, and what the user can do.
std::string text_of_exceeded(const ValueMemory& memory, const Sites& sites);

}  // namespace lockstep::cli
