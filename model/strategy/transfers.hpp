#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/units.hpp"

namespace lockstep {

/// Transfers in one direction between memories in one step, for transfers.LABEL of a scenario.
struct Transfer {
  std::string label;
  int64_t count = 0;
  Bytes bytes{};
};

/// The transfers of one optimizer step, its micro-batches together, counted as they are submitted.
class Transfers {
 public:
  /// `guides`: labels reported as `transfers.counted_by_guides`; tutorials count 3 for DP, 2 for
  /// DDP.
  explicit Transfers(std::vector<std::string_view> guides) : guides_(std::move(guides)) {}

  /// A forward begins. One that is not for training belongs to no step and is not counted.
  void begin_forward(bool training);
  void end_step() { step_has_ended_ = true; }
  void add(std::string_view label, Bytes bytes);
  /// A part of a step begins that may come again.
  void begin_period() { before_period_ = transfers_; }
  /// All since then comes so many times more.
  void repeat_period(int64_t times);

  /// In the order in which they first took place.
  std::vector<Transfer> all() const;

 private:
  std::vector<std::string_view> guides_;
  std::vector<Transfer> transfers_;
  std::vector<Transfer> before_period_;
  bool step_has_ended_ = false;
  bool counts_ = true;
};

/// Both strategies that copy batches call that so.
inline constexpr std::string_view data_to_devices = "data_to_devices";

}  // namespace lockstep
