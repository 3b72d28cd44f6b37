#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trainer/logging/run_log.hpp"
#include "model/trainer/loop/optimizer_rates.hpp"
#include "model/trainer/loop/weight_update.hpp"

namespace lockstep {

/// Adds the updates of a period to the log so many times more.
void repeat_updates(const std::vector<WeightUpdate>& period, int64_t times, RankLog& log);

/// The updates of a period, batch by batch and again from its beginning, with rates that differ.
class UpdatesByBatch {
 public:
  /// `since`: batches between the last update before the period and its beginning.
  UpdatesByBatch(std::vector<WeightUpdate> period, int64_t since)
      : period_(std::move(period)), since_(since) {
    for (const WeightUpdate& row : period_) {
      updates_ += row.times;
    }
  }

  /// Adds those of the next batch to the log, with the present rates of the optimizers. `names`: of
  /// the optimizers.
  void take(const std::vector<std::string>& names, const OptimizerRates& rates, RankLog& log);

 private:
  std::vector<WeightUpdate> period_;
  int64_t since_;
  int64_t updates_ = 0;  ///< of the period
  size_t row_ = 0;       ///< of the next update
  int64_t taken_ = 0;    ///< updates of this row
};

}  // namespace lockstep
