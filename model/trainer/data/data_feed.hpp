#pragma once

#include <deque>

#include "model/program/rank.hpp"
#include "model/trainer/data/data_loader.hpp"

namespace lockstep {

/// How long a rank waits for its batches. Without workers the rank's own thread prepares each
/// batch; with workers they prepare up to `workers * prefetch_factor` batches ahead, side by side
/// on the cores that the rank has: more workers than cores take turns.
class DataFeed {
 public:
  /// `batch_size`: of this rank.
  DataFeed(Rank& rank, const LoaderSettings& loader, int64_t batch_size)
      : rank_(rank), loader_(loader), batch_size_(batch_size) {}

  /// Returns when batch `number` of `batches` has been loaded.
  Program next(int64_t samples, int64_t number, int64_t batches);
  /// So many batches are left out: those that are prepared stand for later ones.
  void leave_out(int64_t batches) { ordered_ += ordered_ > 0 ? batches : 0; }
  /// How many batches are prepared ahead of the one that is used.
  int64_t ahead() const;

 private:
  Rank& rank_;
  const LoaderSettings& loader_;
  int64_t batch_size_;
  std::deque<Ticket> prepared_;
  int64_t ordered_ = 0;
};

}  // namespace lockstep
