#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/trainer/scheduler/parameter_group.hpp"
#include "model/trainer/scheduler/scheduler_settings.hpp"

namespace lockstep {

/// A scheduler of torch/optim/lr_scheduler.py that monitors nothing. It reads and sets the group of
/// its optimizer, so that several may act on one, and rounding is the same. The settings outlive
/// it. Steps raise ProgramException where torch raises.
class TorchSchedule {
 public:
  virtual ~TorchSchedule() = default;
  virtual std::unique_ptr<TorchSchedule> copy() const = 0;

  /// `_initial_step`, the end of every constructor.
  void begin(ParameterGroup& group);
  virtual void step(ParameterGroup& group);
  /// `_update_lr(0)`: SequentialLR begins a scheduler by its closed form, if it has one.
  virtual void restart(ParameterGroup& group);
  /// SequentialLR's `recursive_undo`.
  virtual void undo() { --last_; }
  /// What its state_dict holds, appended, and taken from the front by load_state_dict.
  virtual void save(std::vector<double>& numbers) const;
  virtual void restore(const std::vector<double>& numbers, size_t& next);

 protected:
  explicit TorchSchedule(const SchedulerSettings& settings) : settings_(settings) {}

  /// `get_lr`
  virtual double rate(ParameterGroup& group) = 0;
  virtual std::optional<double> closed_form() const { return std::nullopt; }

  /// LRScheduler's constructor up to its step.
  void take_base(ParameterGroup& group);
  [[noreturn]] void raise(const std::string& what) const;
  /// As Python divides.
  double quotient(double a, double b) const;
  bool is_initial() const { return is_initial_; }
  const SchedulerSettings& settings() const { return settings_; }

  double base_rate_ = 0;  ///< base_lrs
  int64_t last_ = -1;     ///< last_epoch

 private:
  const SchedulerSettings& settings_;
  bool is_initial_ = false;
};

/// Makes one as its constructor does, with its effects on the group.
std::unique_ptr<TorchSchedule> make_schedule(const SchedulerSettings& settings,
                                             ParameterGroup& group);

}  // namespace lockstep
