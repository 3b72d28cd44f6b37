#include "tests/property/left_out_cases.hpp"

#include <algorithm>
#include <string>

namespace lockstep::test {

namespace {

// What such a strategy does in a step depends on how many there have been.
bool counts_steps(const LongTraining& training) {
  return training.strategy.find("Bagua") != std::string::npos ||
         training.strategy.find("hook") != std::string::npos;
}

void count_strategies(const LongTraining& training, const cli::OneRun& run,
                      Distribution& distribution) {
  const bool has_stages = training.strategy.find("Megatron") != std::string::npos ||
                          training.strategy.find("Pipeline") != std::string::npos;
  if (has_stages && !run.result.journal->repeated.empty()) {
    distribution.count("left out between stages");
    const bool within = std::ranges::any_of(run.result.journal->repeated[0], [](const auto& rows) {
      return rows.level == period_level::micro_batches;
    });
    distribution.count(within ? "left out within a step" : "no micro-batch left out");
  }
  if (counts_steps(training) && !run.result.journal->repeated.empty()) {
    distribution.count("left out between changes of the strategy");
  }
  if (training.strategy.find("Horovod") != std::string::npos) {
    distribution.count(run.result.journal->repeated.empty() ? "Horovod"
                                                            : "left out beside a thread");
  }
  if (training.strategy.find("ParameterServer") != std::string::npos) {
    distribution.count(run.result.journal->repeated.empty() ? "servers"
                                                            : "left out beside servers");
  }
}

}  // namespace

void count_case(const LongTraining& training, const cli::OneRun& run, Distribution& distribution) {
  count_strategies(training, run, distribution);
  const std::string& why_not = run.preparation.repetition.why_not;
  const bool has_left_out = !run.result.journal->repeated.empty();
  if (has_left_out && training.more.find("lr_scheduler") != std::string::npos) {
    distribution.count("left out beside a scheduler");
  }
  if (has_left_out && !run.preparation.repetition.counted.empty()) {
    distribution.count("left out between decisions by counters");
  }
  if (has_left_out && training.trainer.find("EarlyStopping") != std::string::npos) {
    distribution.count("left out beside EarlyStopping");
  }
  const bool has_faults = training.more.find("faults") != std::string::npos;
  if (has_left_out && has_faults) {
    distribution.count(run.result.struck_faults.empty() ? "left out beside faults that never struck"
                                                        : "left out around faults");
  }
  if (has_left_out && !training.own_size.empty()) {
    distribution.count("left out where ranks have other batches");
  }
  if (has_left_out && !training.own_batches.empty()) {
    distribution.count(training.strategy.find("join") == std::string::npos
                           ? "left out where ranks have unequal numbers of batches"
                           : "left out beside ranks that have joined");
  }
  const bool has_come_back =
      has_left_out && std::ranges::any_of(run.result.journal->repeated[0],
                                          [](const auto& rows) { return rows.row != rows.end; });
  if (has_come_back) {
    distribution.count("left out like something long ago");
  }
  if (has_left_out && training.trainer.find("every_n_train_steps") != std::string::npos) {
    distribution.count("left out beside checkpoints within epochs");
  }
  if (has_left_out && training.counts_batches) {
    distribution.count("left out where batches are counted");
  }
  distribution.count(has_left_out      ? "left out"
                     : why_not.empty() ? "nothing left out"
                                       : "nothing left out: " + why_not);
}

}  // namespace lockstep::test
