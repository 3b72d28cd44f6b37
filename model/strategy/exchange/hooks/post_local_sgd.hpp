#pragma once

#include <optional>

#include "model/strategy/exchange/hooks/bucket_hook.hpp"
#include "model/strategy/known_difference.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// PostLocalSGDState's arguments.
struct PostLocalSgdOptions {
  int64_t start_iteration = 0;            ///< start_localSGD_iter
  bool reduces_gradients_locally = true;  ///< post_local_gradient_allreduce
};

/// post_localSGD_hook: all ranks exchange gradients in the first iterations, later those of a node,
/// or none (post_localSGD_hook.py).
class PostLocalSgdHook final : public BucketHook {
 public:
  explicit PostLocalSgdHook(const PostLocalSgdOptions& options) : options_(options) {}
  Program begin(Rank& rank) override;
  Ticket start(Rank& rank, const FullBucket& bucket) override;

 private:
  bool is_global() const { return iteration_ < options_.start_iteration; }

  PostLocalSgdOptions options_;
  int64_t iteration_ = 0;  ///< global ones so far
  std::optional<GroupId> subgroup_;
};

/// The mean of all ranks' parameters in some steps of an optimizer: at the first behind the
/// warm-up, and from there every `period` steps (model_averaging/averagers.py).
class PeriodicModelAverager {
 public:
  PeriodicModelAverager(Replica& replica, int64_t period, int64_t warmup_steps)
      : replica_(&replica), period_(period), warmup_steps_(warmup_steps) {}

  /// After a step of the optimizer. Gives the bytes that it sent: none where it is not its turn.
  Task<Bytes> average(Rank& rank, size_t optimizer);
  /// Between two averagings replicas differ by design; where the second never came, what local
  /// steps add up to was never averaged.
  KnownDifference difference() const;

 private:
  std::vector<Slice> updated(size_t optimizer) const;

  Replica* replica_;
  int64_t period_;
  int64_t warmup_steps_;
  int64_t steps_ = 0;
  int64_t last_ = 0;  ///< steps at the last averaging
  int64_t averagings_ = 0;
};

}  // namespace lockstep
