#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/core/values.hpp"
#include "model/program/run.hpp"
#include "model/trainer/logging/run_log.hpp"
#include "sim/step_observer.hpp"

namespace lockstep::cli {

/// Of the elements of one parameter: the least and the most that ranks have of each.
class RangeOfRanks {
 public:
  void add(const Values& values);
  /// The largest distance of an element. A NaN is as far apart as can be.
  double apart() const;

 private:
  std::vector<double> least_;
  std::vector<double> most_;
};

/// How far the weights of ranks were apart after the optimizer steps that all of them took.
struct WeightSpreads {
  static constexpr int64_t steps_max = 256;

  struct OfStep {
    int64_t step = 0;  ///< optimizer steps that each rank had taken in this run
    double apart = 0;  ///< as WeightSpread::apart
  };
  /// In order; of many steps every second, fourth, ..: those that `every` divides.
  std::vector<OfStep> steps;
  int64_t every = 1;
  std::optional<OfStep> greatest;  ///< of all steps, also of those that are left out above
  size_t parameter = 0;            ///< in definition order, that has this element

  bool empty() const { return steps.empty(); }
  void add(const OfStep& one, size_t of_parameter);
};

/// Collects them from a simulation of all ranks. Looks at those whose log says where they hold
/// their parameters.
class WeightObserver final : public sim::StepObserver {
 public:
  /// Of a run with values in which no rank stands for others.
  static bool sees(const RunOptions& options) {
    return options.numerics && options.classes == nullptr;
  }
  /// `log` outlives it; null: there is no trainer, and nothing is marked.
  explicit WeightObserver(const RunLog* log) : log_(log) {}
  void step_ended(int32_t rank, const BufferTable& buffers) override;
  const WeightSpreads& spreads() const { return spreads_; }

 private:
  /// Numbers that wait for slower ranks, at most: steps before are forgotten then.
  static constexpr int64_t pending_max = int64_t{1} << 23;

  struct Pending {
    std::vector<RangeOfRanks> parameters;
    int64_t ranks = 0;
  };
  void complete(int64_t step, const Pending& pending);

  const RunLog* log_;
  std::map<int32_t, int64_t> steps_;  ///< that each rank has taken
  std::map<int64_t, Pending> pending_;
  int64_t forgotten_ = 0;  ///< the last step that was
  int64_t trainers_ = 0;
  WeightSpreads spreads_;
};

}  // namespace lockstep::cli
