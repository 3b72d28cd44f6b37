#pragma once

#include <optional>

#include "model/strategy/exchange/hooks/bucket_hook.hpp"

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
  bool counts_steps() const override { return place(0) != 0; }
  int64_t kind_of_step(int64_t ahead) const override {
    return kind_beside(iteration_ + ahead, options_.start_iteration);
  }
  int64_t place(int64_t ahead) const override {
    return place_beside(iteration_ + ahead, options_.start_iteration);
  }
  void leave_out(int64_t steps) override { iteration_ += steps; }

 private:
  bool is_global() const { return iteration_ < options_.start_iteration; }

  PostLocalSgdOptions options_;
  int64_t iteration_ = 0;  ///< the next one
  std::optional<GroupId> subgroup_;
};

}  // namespace lockstep
