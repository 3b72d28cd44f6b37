#include "tests/property/same_results.hpp"

#include <rapidcheck.h>

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

}  // namespace

void expect_same_results(const cli::Results& results, const Journal& journal,
                         const cli::Results& of_all) {
  expect_same(results.prediction, of_all.prediction);
  RC_ASSERT(results.effective_batch_size == of_all.effective_batch_size);
  RC_ASSERT(results.samples_missed == of_all.samples_missed);
  RC_ASSERT(results.samples_repeated == of_all.samples_repeated);
  RC_ASSERT(results.ranks.size() == of_all.ranks.size());
  for (size_t rank = 0; rank < of_all.ranks.size(); ++rank) {
    expect_same(results.ranks[rank], of_all.ranks[rank]);
    RC_ASSERT(written_by(results, rank) == written_by(of_all, rank));
    RC_ASSERT(counts_for_rank(journal, results.ranks[rank].transfers, static_cast<int32_t>(rank)) ==
              of_all.ranks[rank].transfers);
  }
}

}  // namespace lockstep::test
