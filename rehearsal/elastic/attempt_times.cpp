#include "rehearsal/elastic/attempt_times.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "rehearsal/measure/measure.hpp"
#include "rehearsal/measure/step_sequence.hpp"

namespace lockstep::cli {

namespace {

// The last moment at which its program did something.
Time last_moment(const Journal& journal, int32_t rank) {
  const LaneJournal& lane = journal.lane(rank, 0);
  Time last{};
  lane.for_each([&](const Row& row) {
    if (row.row == RowKind::op) {
      last = std::max(last, lane.completion(row.sequence).issue);
    } else if (row.row == RowKind::settle) {
      const Completion done = lane.completion(row.sequence);
      last = done.outcome == Outcome::ok ? std::max(last, done.finish) : last;
    }
  });
  return last;
}

bool is_step(const Row& row) {
  return row.row == RowKind::choice && row.tag == static_cast<int32_t>(ChoiceKind::step);
}

std::set<SiteId> sites_of_saving(const Sites& sites) {
  std::set<SiteId> found;
  for (const auto& [id, site] : sites.all()) {
    if (site.description.find("ModelCheckpoint") != std::string::npos && site.is_barrier) {
      found.insert(id);
    }
  }
  return found;
}

}  // namespace

std::optional<Time> time_of_fault(const OneRun& run, int32_t number) {
  const FaultSpec& fault = run.preparation.scenario->faults.at(static_cast<size_t>(number));
  const bool ends_rank = fault.kind == FaultKind::lost_rank || fault.kind == FaultKind::lost_node ||
                         fault.kind == FaultKind::signal;
  const bool is_timed = ends_rank && fault.at && fault.at->value.kind == Instant::Kind::time;
  return is_timed ? std::optional(fault.at->value.time) : std::nullopt;
}

Time time_of_failure(const OneRun& run) {
  std::optional<Time> first;
  for (const auto& [fault, rank] : run.result.struck_faults) {
    if (const std::optional<Time> at = time_of_fault(run, fault)) {
      first = first ? std::min(*first, *at) : *at;
    }
  }
  for (size_t rank = 0; rank < run.result.ends.size(); ++rank) {
    const RankEnd::Kind kind = run.result.ends[rank].kind;
    const bool is_timed = std::ranges::any_of(run.result.struck_faults, [&](const auto& struck) {
      return struck.second == static_cast<int32_t>(rank) && time_of_fault(run, struck.first);
    });
    if (!is_timed && (kind == RankEnd::Kind::lost || kind == RankEnd::Kind::raised)) {
      const Time end = last_moment(*run.result.journal, static_cast<int32_t>(rank));
      first = first ? std::min(*first, end) : end;
    }
  }
  return first.value_or(run.result.total_time);
}

Time training_until(const OneRun& run, const AttemptResult& attempt, int64_t step) {
  const Journal& journal = *run.result.journal;
  const std::vector<StepMark> steps = steps_of(journal, 0);
  const int64_t taken = std::min(step - attempt.first_step, count_steps(steps));
  const bool is_whole = attempt.failure.empty();
  if (steps.empty() || (taken <= 0 && !is_whole)) {
    return {};
  }
  const Time end =
      is_whole ? attempt.ran : StepSequence(journal.repeated_on(0, 0), steps).at(taken - 1).finish;
  if (attempt.began == Time{}) {
    return end;
  }
  const Time one = steps.size() > 1 ? steps[1].finish - steps[0].finish : steps[0].finish;
  return end - std::max(Time{}, steps[0].finish - one);
}

// Files of one step are written one after the other.
Time checkpoint_pause(const OneRun& run) {
  if (!run.result.journal) {
    return {};
  }
  const std::set<SiteId> saving = sites_of_saving(run.preparation.sites);
  const LaneJournal& lane = run.result.journal->lane(0, 0);
  Time longest{};
  std::optional<Time> begin;
  Time end{};
  const auto close = [&] {
    longest = begin ? std::max(longest, end - *begin) : longest;
    begin.reset();
  };
  lane.for_each([&](const Row& row) {
    if (is_step(row)) {
      close();
    } else if (row.row == RowKind::op && saving.contains(row.site)) {
      const Completion done = lane.completion(row.sequence);
      begin = begin.value_or(std::min(done.issue, done.start));
      end = std::max(end, done.finish);
    }
  });
  close();
  return longest;
}

}  // namespace lockstep::cli
