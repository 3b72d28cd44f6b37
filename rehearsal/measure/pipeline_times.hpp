#pragma once

#include <optional>
#include <vector>

#include "model/strategy/pipeline/schedule.hpp"
#include "rehearsal/results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// What a rank of a pipeline computed for one micro-batch, and what came before.
struct TimedAction {
  int32_t rank = 0;
  PipelineAction action{};
  Time start{};
  Time finish{};
  Time waited{};                               ///< since what the rank computed before
  std::optional<PipelineAction> waited_for{};  ///< the last of its inputs that came meanwhile
  Time after_input{};                          ///< of `waited`: since that one was computed
  bool is_left_out = false;                    ///< it repeats one that was simulated
};

/// One rank of a pipeline in a steady step.
struct TimesOfPipelineRank {
  int32_t rank = 0;
  std::vector<int32_t> stages{};
  Time forward{};
  Time backward{};  ///< and input gradients
  Time weight_gradient{};
  Time waited{};          ///< between its actions, and before the first
  int32_t most_held = 0;  ///< forwards whose gradients of weights are still to come
  Breakdown step{};
  Bytes memory_peak{};
};

/// A steady step of the first pipeline; of ranks that compute a stage together, the first.
struct PipelineTimes {
  std::vector<TimesOfPipelineRank> ranks{};
  std::vector<TimedAction> actions{};  ///< by rank, in the order in which it computed them
};

/// Nothing: no pipeline, or no step.
std::optional<PipelineTimes> pipeline_times(const OneRun& run, const Results& results);
/// How many micro-batches of a step of a rank were simulated, where others of it repeat these.
/// Nothing: all were. `rows`: those of the step.
std::optional<MicroBatches> simulated_micro_batches(const Journal& journal, int32_t rank,
                                                    const RowRange& rows);
/// The actions that their ranks waited for longest, those first.
std::vector<TimedAction> longest_waits(const PipelineTimes& times, size_t most);

}  // namespace lockstep::cli
