#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/trainer/callback/callback.hpp"

namespace lockstep {

/// The callbacks of a trainer on one rank, in the order in which Lightning calls them: checkpoints
/// are last (callback_connector.py).
class Callbacks {
 public:
  Callbacks(const std::vector<CallbackSettings>& settings, Training& training);

  Program run(CallbackHook hook);

  /// In the order in which they are called.
  std::vector<SavedObject> state() const;
  void restore(const std::vector<SavedObject>& saved);

  std::vector<int64_t> counted() const;
  /// Counts what periods that have been left out would have, `times` as much as `counted`.
  void count_left_out(const std::vector<int64_t>& counted, int64_t times);
  /// The rows of rates that loggers would get there, in their order.
  std::vector<Callback::Rates> rates_at(CallbackHook hook) const;
  /// As Callback's.
  void go_on_from(int64_t step);

 private:
  static constexpr size_t hooks = static_cast<size_t>(CallbackHook::train_end) + 1;
  const std::vector<Callback*>& acting(CallbackHook hook) const {
    return acting_[static_cast<size_t>(hook)];
  }

  std::vector<std::unique_ptr<Callback>> callbacks_;
  std::array<std::vector<Callback*>, hooks> acting_;  ///< by hook
};

}  // namespace lockstep
