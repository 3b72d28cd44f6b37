#include "rehearsal/measure/step_alone.hpp"

#include "rehearsal/measure/prober.hpp"

namespace lockstep::cli {

namespace {

bool ends_an_epoch_each_step(const Rehearsal& rehearsal) {
  const RunLog* const log = rehearsal.run.preparation.log.get();
  const Prediction& prediction = rehearsal.results.prediction;
  return log != nullptr && rehearsal.scenario->trainer && prediction.steps > 1 &&
         log->ranks.front().epochs >= prediction.steps;
}

void take_rates(const Prediction& alone, Prediction& prediction) {
  prediction.step_time = alone.step_time;
  prediction.steady = alone.steady;
  prediction.steps_of_cycle = alone.steps_of_cycle;
  prediction.mean_step_time = alone.mean_step_time;
  prediction.breakdown = alone.breakdown;
  prediction.bubble = alone.bubble;
  prediction.samples_per_s = alone.samples_per_s;
  prediction.tokens_per_s = alone.tokens_per_s;
  prediction.mfu = alone.mfu;
  prediction.implausible_mfu = alone.implausible_mfu;
}

}  // namespace

void measure_step_alone(const RehearseRequest& request, Rehearsal& rehearsal) {
  if (is_real(rehearsal.world) || rehearsal.hung || !rehearsal.undecided.empty() ||
      rehearsal.results.elastic || !ends_an_epoch_each_step(rehearsal)) {
    return;
  }
  Prober prober(rehearsal, request);
  if (!prober.may_try_own_batch() || !prober.affordable()) {
    return;
  }
  const Probe& probe = prober.probe_base();
  // The end of an epoch also cuts a window of accumulated batches, which the longer epoch does not.
  if (!probe.results || !probe.results->prediction.step_time ||
      probe.results->effective_batch_size != rehearsal.results.effective_batch_size) {
    return;
  }
  take_rates(probe.results->prediction, rehearsal.results.prediction);
  ByRank<RankResults>& ranks = rehearsal.results.ranks;
  for (size_t place = 0; place < ranks.distinct().size(); ++place) {
    const RankResults& alone = probe.results->ranks[ranks.first_of(place)];
    ranks.distinct()[place].transfers = alone.transfers;
    ranks.distinct()[place].mean_sent = alone.mean_sent;
  }
}

}  // namespace lockstep::cli
