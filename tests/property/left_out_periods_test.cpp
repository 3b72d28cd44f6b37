// What a simulation leaves out, because the world has come back to the same state, is what it would
// have done: every operation of every rank with its times, the memory and the measurements.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <span>
#include <tuple>

#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/measure/measure.hpp"
#include "rehearsal/measure/pipeline_times.hpp"
#include "rehearsal/measure/step_sequence.hpp"
#include "tests/property/agreement.hpp"
#include "tests/property/held.hpp"
#include "tests/property/left_out_cases.hpp"
#include "tests/property/long_pipeline.hpp"
#include "tests/property/long_training.hpp"
#include "tests/property/same_results.hpp"
#include "tests/property/scenario_of.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace left_out_periods_test {

namespace {

constexpr const char* of_steps = "what is left out is what would have happened";
constexpr const char* of_micro_batches =
    "micro-batches that are left out are what would have happened";

/// A row with what became of it; tickets and buffers, which are numbered, are left out.
struct Done {
  Row row;
  Completion completion;
  int64_t entry = -1;  ///< of what was left out, that puts it back; -1: it was simulated
};

void shift(Completion& completion, Time by) {
  completion.issue += by;
  completion.start += by;
  completion.finish += by;
}

// What a lane of the rank did, with what was left out put back.
std::vector<Done> rows_of(const Journal& journal, int32_t rank, int32_t number) {
  std::vector<Done> done;
  std::vector<size_t> place;  // of each row of the journal
  const LaneJournal& lane = journal.lane(rank, number);
  const std::span<const RepeatedRows> repeated = journal.repeated_on(rank, number);
  size_t next = 0;
  std::vector<size_t> before;  // what each entry puts back, how much was there
  const auto put_back = [&] {
    for (; next < repeated.size() && repeated[next].row == static_cast<int64_t>(place.size());
         ++next) {
      const RepeatedRows& rows = repeated[next];
      before.push_back(done.size());
      // What is put back where a period begins or ends may be a part of it, or not.
      const auto place_of = [&](int64_t row, int64_t entry) {
        const auto at = static_cast<size_t>(entry);
        const bool has_entry = at < before.size() && repeated[at].row == row;
        return has_entry ? before[at] : place[static_cast<size_t>(row)];
      };
      const size_t begin = place_of(rows.begin, rows.first_inner);
      const size_t end = place_of(rows.end, rows.end_inner);
      for (int64_t turn = 0; turn < rows.periods; ++turn) {
        for (size_t at = begin; at < end; ++at) {
          Done again = done[at];
          again.entry = static_cast<int64_t>(next);
          if (again.row.row == RowKind::op) {
            shift(again.completion, rows.first + rows.period * turn);
          }
          done.push_back(again);
        }
      }
    }
  };
  lane.for_each([&](const Row& row) {
    put_back();
    place.push_back(done.size());
    const bool has_ticket = row.row == RowKind::op;
    done.push_back({row, has_ticket ? lane.completion(row.sequence) : Completion{}});
  });
  put_back();
  return done;
}

bool are_same(const Done& one, const Done& other) {
  const auto what = [](const Row& row) {
    return std::tuple(row.row, row.kind, row.kernel, row.dtype, row.reduction, row.bytes, row.peer,
                      row.group, row.stream, row.site);
  };
  const auto when = [](const Completion& completion) {
    return std::tuple(completion.outcome, completion.issue, completion.start, completion.finish);
  };
  return what(one.row) == what(other.row) && when(one.completion) == when(other.completion);
}

std::string text_of(const Done& done) {
  return fmt::format(
      "{} at site {}, {} B, submitted at {}, from {} to {} ps{}", lockstep::text_of(done.row),
      done.row.site.value, done.row.bytes, done.completion.issue.count(),
      done.completion.start.count(), done.completion.finish.count(),
      done.entry < 0 ? std::string() : fmt::format(" (put back by entry {})", done.entry));
}

std::vector<std::tuple<std::string, double, int64_t, int64_t>> updates_of(const RankLog& log) {
  std::vector<std::tuple<std::string, double, int64_t, int64_t>> updates;
  for (const WeightUpdate& update : log.weight_updates) {
    updates.emplace_back(update.optimizer, update.learning_rate, update.times, update.batches);
  }
  return updates;
}

std::vector<std::string> keys_of(const std::map<std::string, double>& metrics) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : metrics) {
    keys.push_back(key);
  }
  return keys;
}

// Placeholder values are drawn for the samples of batches that were simulated; what the scenario
// gives is exact, and so are the numbers of batches and samples.
void expect_same_logged(const RankLog& log, const RankLog& log_of_whole) {
  for (const auto& [key, value] : log.metrics) {
    const bool is_exact = key.starts_with("one") || key.starts_with("lr-");
    RC_ASSERT(!is_exact || value == log_of_whole.metrics.at(key));
  }
  RC_ASSERT(log.logged.size() == log_of_whole.logged.size());
  for (size_t one = 0; one < log.logged.size(); ++one) {
    RC_ASSERT(log.logged[one].key == log_of_whole.logged[one].key);
    RC_ASSERT(log.logged[one].batches == log_of_whole.logged[one].batches);
    RC_ASSERT(log.logged[one].batch_sizes == log_of_whole.logged[one].batch_sizes);
  }
}

// Of training, the last ones: at which step and in which epoch each came, and what it shows; of
// rates, at which step, and the rates. A fault may end a run before the rows that are known.
void expect_same_rows(const RankLog& log, const RankLog& log_of_whole, bool has_faults) {
  RC_ASSERT(log.logger.row_count == log_of_whole.logger.row_count);
  const auto of_training = [](const RankLog& from) {
    std::vector<std::tuple<int64_t, double, double, std::vector<std::string>>> rows;
    for (size_t at = from.logger.rows.size(); at > from.logger.rows_before_gap; --at) {
      const LoggerRow* const row = &from.logger.rows[at - 1];
      if (row->is_of_rates) {
        RC_ASSERT(!row->values.empty());
        rows.emplace_back(row->step, row->values.begin()->second, row->values.rbegin()->second,
                          keys_of(row->values));
      } else if (row->counts_training) {
        const auto batch = row->values.find("batch");
        rows.emplace_back(row->step, row->values.at("epoch"),
                          batch == row->values.end() ? -1 : batch->second, keys_of(row->values));
      }
    }
    return rows;
  };
  auto rows = of_training(log);
  auto rows_of_whole = of_training(log_of_whole);
  const size_t shown = std::min(rows.size(), rows_of_whole.size());
  RC_ASSERT(shown > 0 || rows_of_whole.empty() || has_faults);
  rows.resize(shown);
  rows_of_whole.resize(shown);
  RC_ASSERT(rows == rows_of_whole);
  RC_ASSERT(log.logger.rates == log_of_whole.logger.rates);
}

// Each of the first steps, then every tenth.
void expect_same_steps(const Journal& journal, const Journal& of_whole) {
  const std::vector<cli::StepMark> marks = cli::steps_of(journal, 0);
  const std::vector<cli::StepMark> steps = cli::steps_of(of_whole, 0);
  const cli::StepSequence sequence(journal.repeated_on(0, 0), marks);
  RC_ASSERT(cli::count_steps(marks) == std::ssize(steps));
  RC_ASSERT(sequence.size() == std::ssize(steps));
  for (size_t at = 0; at < steps.size(); at += at < 100 ? 1 : 10) {
    const cli::StepSequence::Step step = sequence.at(static_cast<int64_t>(at));
    const Time begin = at == 0 ? Time{} : steps[at - 1].finish;
    if (step.finish != steps[at].finish || step.length != steps[at].finish - begin) {
      RC_FAIL(fmt::format("step {} takes {} ps and ends at {} ps; without leaving out {} and {} ps",
                          at, step.length.count(), step.finish.count(),
                          (steps[at].finish - begin).count(), steps[at].finish.count()));
    }
  }
}

void expect_same_lane(const Journal& journal, const Journal& of_whole, int32_t rank, int32_t lane) {
  const std::vector<Done> rows = rows_of(journal, rank, lane);
  const std::vector<Done> rows_of_whole = rows_of(of_whole, rank, lane);
  for (size_t row = 0; row < std::min(rows.size(), rows_of_whole.size()); ++row) {
    if (!are_same(rows[row], rows_of_whole[row])) {
      RC_FAIL(fmt::format("rank {}, lane {}, row {}: {}; without leaving out: {}", rank, lane, row,
                          text_of(rows[row]), text_of(rows_of_whole[row])));
    }
  }
  RC_ASSERT(rows.size() == rows_of_whole.size());
}

void expect_same(const cli::OneRun& run, const cli::OneRun& whole) {
  const bool has_faults = !run.preparation.scenario->faults.empty();
  RC_ASSERT(run.result.total_time == whole.result.total_time);
  RC_ASSERT(run.result.hung == whole.result.hung);
  expect_same_steps(*run.result.journal, *whole.result.journal);
  RC_ASSERT(run.result.struck_faults == whole.result.struck_faults);
  for (int32_t rank = 0; rank < whole.result.journal->ranks(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    RC_ASSERT(run.result.journal->lanes(rank) == whole.result.journal->lanes(rank));
    for (int32_t lane = 0; lane < whole.result.journal->lanes(rank); ++lane) {
      expect_same_lane(*run.result.journal, *whole.result.journal, rank, lane);
    }
    const RankLog& log = run.preparation.log->ranks[at];
    const RankLog& log_of_whole = whole.preparation.log->ranks[at];
    RC_ASSERT(log.steps == log_of_whole.steps);
    RC_ASSERT(log.epochs == log_of_whole.epochs);
    RC_ASSERT(log.staleness == log_of_whole.staleness);
    RC_ASSERT(keys_of(log.metrics) == keys_of(log_of_whole.metrics));  // of placeholder values
    expect_same_logged(log, log_of_whole);
    expect_same_rows(log, log_of_whole, has_faults);
    RC_ASSERT(updates_of(log) == updates_of(log_of_whole));
    RC_ASSERT(log.learning_rates == log_of_whole.learning_rates);
    RC_ASSERT(log.checkpoints.size() == log_of_whole.checkpoints.size());
    for (size_t one = 0; one < log.checkpoints.size(); ++one) {
      RC_ASSERT(log.checkpoints[one].saved == log_of_whole.checkpoints[one].saved);
      RC_ASSERT(log.checkpoints[one].best == log_of_whole.checkpoints[one].best);
      RC_ASSERT(log.checkpoints[one].last == log_of_whole.checkpoints[one].last);
    }
    RC_ASSERT(run.result.memory[at].size() == whole.result.memory[at].size());
    for (const auto& [device, memory] : run.result.memory[at]) {
      RC_ASSERT(memory.peak == whole.result.memory[at].at(device).peak);
      RC_ASSERT(memory.held == whole.result.memory[at].at(device).held);
    }
  }
}

void expect_same_waits(const cli::OneRun& run, const cli::Results& results,
                       const cli::OneRun& whole, const cli::Results& of_whole) {
  const auto times = cli::pipeline_times(run, results);
  const auto times_of_whole = cli::pipeline_times(whole, of_whole);
  RC_ASSERT(times.has_value() == times_of_whole.has_value());
  if (!times) {
    return;
  }
  RC_ASSERT(times->actions.size() == times_of_whole->actions.size());
  for (size_t at = 0; at < times->ranks.size(); ++at) {
    RC_ASSERT(times->ranks[at].most_held == times_of_whole->ranks[at].most_held);
  }
  for (size_t at = 0; at < times->actions.size(); ++at) {
    RC_ASSERT(times->actions[at].action == times_of_whole->actions[at].action);
    RC_ASSERT(times->actions[at].start == times_of_whole->actions[at].start);
    RC_ASSERT(times->actions[at].finish == times_of_whole->actions[at].finish);
    RC_ASSERT(times->actions[at].waited == times_of_whole->actions[at].waited);
    RC_ASSERT(times->actions[at].after_input == times_of_whole->actions[at].after_input);
  }
}

void expect_same(const std::vector<Finding>& findings, const std::vector<Finding>& of_whole) {
  const auto what = [](const std::vector<Finding>& all) {
    std::vector<std::string> texts;
    for (const Finding& finding : all) {
      texts.push_back(fmt::format("{}: {} at {}, call {}, {}", finding.code, finding.title,
                                  finding.sites.empty() ? 0 : finding.sites.front().site.value,
                                  finding.call, finding.when));
      for (const RankAction& action : finding.did) {
        texts.push_back(
            fmt::format("{}: call {}, {}", action.ranks.phrase(), action.call, action.operation));
      }
      texts.insert(texts.end(), finding.follows.begin(), finding.follows.end());
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  RC_ASSERT(what(findings) == what(of_whole));
}

// Of one scenario with and without leaving out.
void expect_same_answers(const LongTraining& training, Distribution& distribution) {
  const cli::OneRun run = cli::run_once(scenario_of(training.text(false)), {});
  const cli::OneRun whole = cli::run_once(scenario_of(training.text(true)), {});
  for (const Problem& problem : whole.problems) {
    RC_LOG() << problem.message << "\n";
  }
  RC_ASSERT(run.ran == whole.ran);
  if (!whole.ran) {
    distribution.count("not run");
    return;
  }
  distribution.count_case();
  RC_ASSERT(whole.result.journal->repeated.empty());
  count_case(training, run, distribution);
  expect_same(run, whole);
  const cli::Results results = cli::measure(run);
  const cli::Results results_of_whole = cli::measure(whole);
  expect_same_results(run, results, whole, results_of_whole);
  expect_same_waits(run, results, whole, results_of_whole);
  expect_same(cli::findings_of(run, cli::World::simulated),
              cli::findings_of(whole, cli::World::simulated));
}

}  // namespace

TEST_CASE("what is left out is what would have happened") {
  Distribution distribution;
  const bool held = holds(of_steps, 120, [&] {
    const LongTraining training = *long_trainings();
    distribution.draw();
    expect_same_answers(training, distribution);
  });
  distribution.print(of_steps);
  REQUIRE(held);
  CHECK(distribution.share("left out") >= 0.2);
  CHECK(distribution.share("left out between stages") > 0);
  CHECK(distribution.share("left out between changes of the strategy") > 0);
  CHECK(distribution.share("left out beside a thread") > 0);
  CHECK(distribution.share("left out beside servers") > 0);
  CHECK(distribution.share("left out beside a scheduler") > 0);
  CHECK(distribution.share("left out between decisions by counters") > 0);
  CHECK(distribution.share("left out around faults") > 0);
  CHECK(distribution.share("left out beside EarlyStopping") > 0);
  CHECK(distribution.share("left out where ranks have unequal numbers of batches") > 0);
  CHECK(distribution.share("left out beside ranks that have joined") > 0);
  CHECK(distribution.share("left out like something long ago") > 0);
  CHECK(distribution.share("not run") <= 0.1);
}

TEST_CASE("micro-batches that are left out are what would have happened") {
  Distribution distribution;
  const bool held = holds(of_micro_batches, 40, [&] {
    const LongTraining training = *long_pipelines();
    distribution.draw();
    expect_same_answers(training, distribution);
  });
  distribution.print(of_micro_batches);
  REQUIRE(held);
  CHECK(distribution.share("left out within a step") > 0.05);
  CHECK(distribution.share("not run") <= 0.3);
}

}  // namespace left_out_periods_test
