#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trainer/logging/run_log.hpp"
#include "model/trainer/loop/optimizer_rates.hpp"
#include "model/trainer/loop/period_tally.hpp"
#include "model/trainer/loop/weight_update.hpp"

namespace lockstep {

/// Makes the first of them a row of its own, whose WeightUpdate::batches count from the beginning
/// of a period, `before` which there were batches since the update before.
void count_from_beginning(std::vector<WeightUpdate>& updates, int64_t before);

/// Adds the updates of so many periods to the log. `tally`: what came before them.
void repeat_updates(const PeriodCounts& period, int64_t times, const UpdateTally& tally,
                    RankLog& log);

/// The updates of a period, batch by batch and again from its beginning, with rates that differ.
class UpdatesByBatch {
 public:
  /// `period` outlives it. `tally`: what came before.
  UpdatesByBatch(const PeriodCounts& period, const UpdateTally& tally);

  /// Adds those of the next batch to the log, with the present rates of the optimizers. `names`: of
  /// the optimizers.
  void take(const std::vector<std::string>& names, const OptimizerRates& rates, RankLog& log);

 private:
  void begin_period();

  const PeriodCounts& period_;
  int64_t since_;      ///< batches since the last update
  int64_t batch_ = 0;  ///< of the period
  size_t row_ = 0;     ///< of the next update
  int64_t taken_ = 0;  ///< updates of this row
  int64_t next_ = 0;   ///< batch of the period in which it comes, from 1 on
};

}  // namespace lockstep
