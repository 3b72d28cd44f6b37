#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/core/site.hpp"

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
  reduce_on_plateau,
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

  SchedulerInterval interval = SchedulerInterval::epoch;
  int64_t frequency = 1;
  std::string monitor;  ///< of reduce_on_plateau
  bool strict = true;
  size_t optimizer = 0;  ///< index into TrainingPlan::optimizers
  SiteId site{};

  bool is_monitored() const { return kind == SchedulerKind::reduce_on_plateau; }
};

}  // namespace lockstep
