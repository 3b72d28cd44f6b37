#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/core/site.hpp"
#include "model/trainer/scheduler/rate_factor.hpp"

namespace lockstep {

enum class SchedulerKind : uint8_t {
  step,
  multi_step,
  constant,
  linear,
  exponential,
  polynomial,
  cosine_annealing,
  cosine_annealing_warm_restarts,
  one_cycle_lr,
  cyclic,
  lambda,
  multiplicative,
  sequential,
  chained,
  reduce_on_plateau,
  warmup,
  warmup_decay,
  warmup_cosine,
  one_cycle,
  range_test,
};

/// What DeepSpeed's own schedulers are given (deepspeed/runtime/lr_schedules.py, 0.16.4).
struct IterationSettings {
  double low = 0;          ///< warmup_min_lr, warmup_min_ratio, cycle_min_lr, lr_range_test_min_lr
  double high = 1e-3;      ///< warmup_max_lr, cycle_max_lr
  double warmup = 1000;    ///< warmup_num_steps
  bool is_linear = false;  ///< warmup_type; else by the logarithm
  double total = 0;        ///< total_num_steps
  double last_ratio = 1e-4;  ///< cos_min_ratio

  double first_size = 2000;   ///< cycle_first_step_size
  double second_size = 2000;  ///< cycle_second_step_size
  double decay_size = 0;      ///< decay_step_size
  double decay_rate = 0;      ///< decay_lr_rate
  bool cycles_momentum = true;
  double low_momentum = 0.8;
  double high_momentum = 0.9;
  double momentum_decay_rate = 0;

  double step_size = 2000;  ///< lr_range_test_step_size
  double step_rate = 1;     ///< lr_range_test_step_rate
  bool in_stairs = false;   ///< lr_range_test_staircase
};

/// What OneCycleLR and CyclicLR are given.
struct CycleSettings {
  double high = 0;  ///< max_lr
  double low = 0;   ///< base_lr
  bool cycles_momentum = true;
  double low_momentum = 0.85;  ///< base_momentum
  double high_momentum = 0.95;

  // OneCycleLR's.
  int64_t total_steps = 0;
  double first_part = 0.3;  ///< pct_start
  bool is_linear = false;   ///< anneal_strategy
  double first_divisor = 25;
  double last_divisor = 1e4;
  bool has_three_phases = false;

  // CyclicLR's.
  enum class Mode : uint8_t { triangular, triangular2, exp_range };
  Mode mode = Mode::triangular;
  double steps_up = 2000;
  double steps_down = 2000;
  double gamma = 1;
};

enum class SchedulerInterval : uint8_t { step, epoch };

/// A scheduler of torch.optim.lr_scheduler with its arguments, and how Lightning steps it. Which
/// arguments hold depends on the kind; the defaults are those of torch that no kind shares.
struct SchedulerSettings {
  SchedulerKind kind = SchedulerKind::step;
  std::string name;           ///< "StepLR"
  int64_t period = 1;         ///< step_size, total_iters, T_max, T_0
  int64_t period_factor = 1;  ///< T_mult
  std::vector<int64_t> milestones;
  double factor = 0.1;  ///< gamma, factor, start_factor, power
  double end_factor = 1;
  double least = 0;  ///< eta_min, min_lr

  bool higher_is_better = false;  ///< mode: max
  int64_t patience = 10;
  double threshold = 1e-4;
  bool threshold_is_relative = true;
  int64_t cooldown = 0;
  double eps = 1e-8;

  IterationSettings of_iterations;
  CycleSettings of_cycle;
  RateFactor rate_factor;  ///< of lambda and multiplicative
  /// Of sequential, whose `milestones` are one fewer, and chained.
  std::vector<SchedulerSettings> schedulers{};

  SchedulerInterval interval = SchedulerInterval::epoch;
  int64_t frequency = 1;
  std::string monitor;  ///< of reduce_on_plateau
  bool strict = true;
  size_t optimizer = 0;  ///< index into TrainingPlan::optimizers
  SiteId site{};

  bool is_monitored() const { return kind == SchedulerKind::reduce_on_plateau; }
  bool counts_iterations() const { return kind >= SchedulerKind::warmup; }
  /// `turn`: of this batch or epoch, from 1 on.
  bool is_due(SchedulerInterval of, int64_t turn) const {
    return interval == of && turn % frequency == 0;
  }
};

}  // namespace lockstep
