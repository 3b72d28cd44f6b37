#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/strategy/known_difference.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/step_kinds.hpp"

namespace lockstep {

/// HierarchicalModelAverager's period_group_size_dict: one entry.
struct AveragingLevel {
  int64_t period = 1;
  int64_t group_size = 1;
};

/// The outer optimizer of DiLoCo (arXiv 2311.08105, algorithm 1): torch's SGD.
struct OuterOptimizerOptions {
  double learning_rate = 0.7;
  double momentum = 0.9;
  bool nesterov = true;
};

/// How replicas that train on their own come together again. At most one of the last two.
struct AveragingOptions {
  std::optional<int64_t> period{};  ///< of PeriodicModelAverager, or of the outer optimizer
  int64_t warmup_steps = 0;
  std::vector<AveragingLevel> levels{};  ///< from the shortest period to the longest
  std::optional<OuterOptimizerOptions> outer{};

  bool averages() const { return period.has_value() || !levels.empty(); }
};

/// What follows the optimizer's steps where models are averaged.
class ModelAverager {
 public:
  explicit ModelAverager(Replica& replica) : replica_(&replica) {}
  virtual ~ModelAverager() = default;

  /// Before the first step, when all ranks hold the same parameters.
  virtual Program begin(Rank& rank);
  /// After a step of the optimizer. Gives the bytes that it sent: none where it is not its turn.
  virtual Task<Bytes> average(Rank& rank, size_t optimizer) = 0;
  /// As of a Strategy, by steps of an optimizer.
  virtual int64_t kind_of_step(int64_t ahead) const = 0;
  virtual int64_t place(int64_t ahead) const = 0;
  virtual int64_t steps_of_cycle() const = 0;
  virtual void leave_out(int64_t steps) = 0;
  /// Between two averagings replicas differ by design; where the one that ends it never came, what
  /// local steps add up to was never averaged.
  virtual KnownDifference difference() const = 0;

 protected:
  /// The optimizer's parameters, those without a gradient left out where `with_gradients`.
  std::vector<Slice> parameters_of(size_t optimizer, bool with_gradients) const;
  /// Their mean over the group takes their place.
  Task<Bytes> replace_by_mean(Rank& rank, const std::vector<Slice>& values, GroupId group,
                              int64_t ranks);
  Replica& replica() const { return *replica_; }

 private:
  Replica* replica_;
};

/// Null where nothing averages.
std::unique_ptr<ModelAverager> make_model_averager(Replica& replica,
                                                   const AveragingOptions& options);

}  // namespace lockstep
