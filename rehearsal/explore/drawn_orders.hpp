#pragma once

#include <cstdint>
#include <string>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// In how many drawn orders of what happens at the same time a scenario is tried.
struct DrawnOrders {
  uint64_t orders = 0;
  Time before = Time::max();  ///< only what happens earlier is in such an order
  int64_t steps = 0;          ///< until then; 0: all

  int64_t count() const { return static_cast<int64_t>(orders); }
  /// " in the first 40 steps", or empty.
  std::string among() const;
};

/// By what the run has cost. Where steps of it were left out, orders are drawn for about as many
/// steps as were simulated, and those behind them may be left out again.
DrawnOrders drawn_orders_of(const OneRun& run);

}  // namespace lockstep::cli
