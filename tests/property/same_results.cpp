#include "tests/property/same_results.hpp"

#include <rapidcheck.h>

#include "cli/render/over_time/utilization.hpp"

namespace lockstep::test {

namespace {

std::vector<Time> parts_of(const cli::Breakdown& step) {
  return {step.compute, step.optimizer,     step.exposed_communication,
          step.data,    step.host,          step.offload,
          step.drive,   step.idle,          step.waiting,
          step.busy,    step.communication, step.optimizer_on_host};
}

void expect_same(const cli::Prediction& told, const cli::Prediction& of_all) {
  RC_ASSERT(told.total_time == of_all.total_time);
  RC_ASSERT(told.steps == of_all.steps);
  RC_ASSERT(told.step_time == of_all.step_time);
  RC_ASSERT(told.steps_of_cycle == of_all.steps_of_cycle);
  RC_ASSERT(told.mean_step_time == of_all.mean_step_time);
  RC_ASSERT(told.first_step == of_all.first_step);
  RC_ASSERT(parts_of(told.breakdown) == parts_of(of_all.breakdown));
  RC_ASSERT(told.bubble == of_all.bubble);
  RC_ASSERT(told.samples_per_s == of_all.samples_per_s);
  RC_ASSERT(told.tokens_per_s == of_all.tokens_per_s);
  RC_ASSERT(told.mfu == of_all.mfu);
  RC_ASSERT(told.implausible_mfu == of_all.implausible_mfu);
}

void expect_same(const cli::RankResults& told, const cli::RankResults& of_all) {
  RC_ASSERT(told.memory.peak == of_all.memory.peak);
  RC_ASSERT(told.memory.held == of_all.memory.held);
  RC_ASSERT(told.host_peak == of_all.host_peak);
  RC_ASSERT(told.drive_peak == of_all.drive_peak);
  RC_ASSERT(told.reserve == of_all.reserve);
  RC_ASSERT(told.peak_at == of_all.peak_at);
  RC_ASSERT(told.host_peak_at == of_all.host_peak_at);
  RC_ASSERT(told.takes_steps == of_all.takes_steps);
}

std::optional<Bytes> written_by(const cli::Results& results, size_t rank) {
  const std::optional<WrittenBytes>& written = results.ranks[rank].checkpoint_bytes;
  return written ? std::optional(written->of(static_cast<int32_t>(rank))) : std::nullopt;
}

void expect_same(const cli::Utilization& told, const cli::Utilization& of_all) {
  RC_ASSERT(told.period == of_all.period);
  RC_ASSERT(told.kernel_ran == of_all.kernel_ran);
  RC_ASSERT(told.working == of_all.working);
  RC_ASSERT(told.usual == of_all.usual);
  RC_ASSERT(told.samples.size() == of_all.samples.size());
  for (size_t at = 0; at < of_all.samples.size(); ++at) {
    RC_ASSERT(told.samples[at].share == of_all.samples[at].share);
    RC_ASSERT(told.samples[at].evaluating == of_all.samples[at].evaluating);
  }
  RC_ASSERT(told.dips.size() == of_all.dips.size());
  for (size_t at = 0; at < of_all.dips.size(); ++at) {
    RC_ASSERT(told.dips[at].end == of_all.dips[at].end);
    RC_ASSERT(told.dips[at].label() == of_all.dips[at].label());
  }
}

void expect_same_over_time(const cli::OneRun& run, const cli::Results& results,
                           const cli::OneRun& of_all, const cli::Results& results_of_all) {
  constexpr int64_t samples = 100;
  const auto seen = cli::utilization_of(run, results.prediction, 0, samples);
  const auto seen_of_all = cli::utilization_of(of_all, results_of_all.prediction, 0, samples);
  RC_ASSERT(seen.has_value() == seen_of_all.has_value());
  if (seen) {
    expect_same(*seen, *seen_of_all);
  }
}

}  // namespace

void expect_same_results(const cli::OneRun& run, const cli::Results& results,
                         const cli::OneRun& of_all, const cli::Results& results_of_all) {
  expect_same(results.prediction, results_of_all.prediction);
  expect_same_over_time(run, results, of_all, results_of_all);
  RC_ASSERT(results.effective_batch_size == results_of_all.effective_batch_size);
  RC_ASSERT(results.samples_missed == results_of_all.samples_missed);
  RC_ASSERT(results.samples_repeated == results_of_all.samples_repeated);
  RC_ASSERT(results.ranks.size() == results_of_all.ranks.size());
  for (size_t rank = 0; rank < results.ranks.size(); ++rank) {
    const cli::RankResults& own = results.ranks[rank];
    const cli::RankResults& same = results_of_all.ranks[rank];
    expect_same(own, same);
    RC_ASSERT(written_by(results, rank) == written_by(results_of_all, rank));
    RC_ASSERT(counts_for_rank(*run.result.journal, own.transfers, static_cast<int32_t>(rank)) ==
              same.transfers);
  }
}

}  // namespace lockstep::test
