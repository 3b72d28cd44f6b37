#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/program/rank.hpp"
#include "model/trainer/callback/callback_settings.hpp"
#include "model/trainer/checkpoint/saved_training.hpp"

namespace lockstep {

class Training;

/// The places of the trainer where callbacks do something.
enum class CallbackHook : uint8_t {
  setup,
  train_epoch_start,
  train_batch_start,
  train_batch_end,
  validation_end,  ///< of a fit, and not of its sanity check
  train_epoch_end,
  train_end,
};

/// A callback of the trainer on one rank. Its settings outlive it.
class Callback {
 public:
  virtual ~Callback() = default;
  /// Whether `run` does anything there, in the whole run: asked once.
  virtual bool acts_on(CallbackHook hook) const = 0;
  virtual Program run(CallbackHook hook) = 0;
  /// What it would give the loggers of rates there, with the present ones; nothing: no row.
  using Rates = std::map<std::string, double>;
  virtual Rates rates_at(CallbackHook /*hook*/) const { return {}; }
  /// What it writes into a checkpoint, and takes from one.
  virtual SavedObject state() const { return {}; }
  virtual void restore(const SavedObject& /*saved*/) {}
  /// What grows by the same in each period of a training that repeats itself.
  virtual std::vector<int64_t*> counters() { return {}; }
  /// Steps of the present epoch have been left out, from behind `step` to the present one: its
  /// state becomes what it would be.
  virtual void go_on_from(int64_t /*step*/) {}
};

}  // namespace lockstep
