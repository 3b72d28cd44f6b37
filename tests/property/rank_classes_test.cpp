// One rank that runs for all that do the same gives what each of them would have done: every
// operation of every rank with its times, the memory, the measurements and the findings.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <regex>

#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/measure/measure.hpp"
#include "rehearsal/rehearsal.hpp"
#include "rehearsal/run/configuration.hpp"
#include "tests/property/agreement.hpp"
#include "tests/property/held.hpp"
#include "tests/property/same_results.hpp"
#include "tests/property/scenario_of.hpp"
#include "tests/property/wide_case.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace rank_classes_test {

namespace {

/// The rows of one rank. A group has a different number on the rank that runs for it, and the same
/// members.
struct RowsOfRank {
  const Journal& journal;
  int32_t rank = 0;

  const LaneJournal& lane(int32_t number) const { return journal.lane(rank, number); }
  Row row(int32_t number, int64_t index) const {
    Row row = journal.meant_by(rank, lane(number).row(index));
    row.group = row.row == RowKind::op && row.group != world_group ? GroupId{1} : row.group;
    return row;
  }
  std::vector<int32_t> members(int32_t number, int64_t index) const {
    const Row row = lane(number).row(index);
    const auto& groups = journal.groups[static_cast<size_t>(rank)];
    const bool names_group = row.row == RowKind::op && row.group != world_group;
    return names_group ? groups.at(row.group.value).members.ranks() : std::vector<int32_t>();
  }
};

void expect_same_lane(const RowsOfRank& own, const RowsOfRank& of_all, int32_t number) {
  const LaneJournal& lane = own.lane(number);
  RC_ASSERT(lane.size() == of_all.lane(number).size());
  for (int64_t index = 0; index < lane.size(); ++index) {
    const Row row = own.row(number, index);
    const Row other_row = of_all.row(number, index);
    if (row != other_row) {
      RC_FAIL(fmt::format("rank {}, row {}: {}; by itself: {}", own.rank, index, text_of(row),
                          text_of(other_row)));
    }
    RC_ASSERT(own.members(number, index) == of_all.members(number, index));
    if (row.row != RowKind::op) {
      continue;
    }
    const Completion one = lane.completion(row.sequence);
    const Completion other = of_all.lane(number).completion(row.sequence);
    if (one.issue != other.issue || one.start != other.start || one.finish != other.finish ||
        one.outcome != other.outcome) {
      RC_FAIL(fmt::format("rank {}, row {}: {} from {} to {} ps; by itself from {} to {} ps",
                          own.rank, index, text_of(row), one.start.count(), one.finish.count(),
                          other.start.count(), other.finish.count()));
    }
  }
}

bool leaves_steps_out(const cli::OneRun& run) {
  return std::ranges::any_of(run.result.journal->repeated.distinct(),
                             [](const auto& of_rank) { return !of_rank.empty(); });
}

void expect_same_end(const cli::OneRun& run, const cli::OneRun& of_all) {
  RC_ASSERT(run.result.total_time == of_all.result.total_time);
  RC_ASSERT(run.result.hung == of_all.result.hung);
  RC_ASSERT(run.result.struck_faults == of_all.result.struck_faults);
  for (int32_t rank = 0; rank < of_all.result.journal->ranks(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    RC_ASSERT(run.result.ends[at].kind == of_all.result.ends[at].kind);
    RC_ASSERT(run.result.ends[at].message == of_all.result.ends[at].message);
    RC_ASSERT(run.result.memory[at].size() == of_all.result.memory[at].size());
    for (const auto& [device, memory] : run.result.memory[at]) {
      RC_ASSERT(memory.peak == of_all.result.memory[at].at(device).peak);
    }
  }
}

void expect_same_operations(const cli::OneRun& run, const cli::OneRun& of_all) {
  RC_ASSERT(run.result.operations == of_all.result.operations);
  for (int32_t rank = 0; rank < of_all.result.journal->ranks(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    RC_ASSERT(run.result.journal->lanes(rank) == of_all.result.journal->lanes(rank));
    for (int32_t lane = 0; lane < of_all.result.journal->lanes(rank); ++lane) {
      expect_same_lane({*run.result.journal, rank}, {*of_all.result.journal, rank}, lane);
    }
    const RankLog& log = run.preparation.log->ranks[at];
    const RankLog& log_of_all = of_all.preparation.log->ranks[at];
    RC_ASSERT(log.steps == log_of_all.steps);
    RC_ASSERT(log.samples_of_steps == log_of_all.samples_of_steps);
    RC_ASSERT(log.samples.size() == log_of_all.samples.size());
    for (size_t use = 0; use < log.samples.size(); ++use) {
      RC_ASSERT(cli::samples_of_rank(run, at, log.samples[use].samples).list() ==
                log_of_all.samples[use].samples.list());
    }
  }
}

/// The same training with one rank for all that do the same, and with every rank.
struct Runs {
  cli::OneRun run;
  cli::OneRun of_all;

  Runs(const WideCase& wide, bool all_steps)
      : run(cli::run_once(scenario_of(text_of(wide, false, all_steps)), {})),
        of_all(cli::run_once(scenario_of(text_of(wide, true, all_steps)), {})) {}
};

// A loss that nobody computes is a placeholder, of the samples of those ranks that run.
std::string without_placeholders(const Finding& finding, const std::string& text) {
  static const std::regex value("[0-9]+[.][0-9]+");
  const bool tells_values = finding.code == "LS302" || finding.code == "LS307";
  return tells_values ? std::regex_replace(text, value, "<value>") : text;
}

std::string text_of(const Finding& finding) {
  std::string text = fmt::format("{} {} {}\n{}\n{} call {}\n{}\n", finding.code, finding.title,
                                 finding.ranks.text(), finding.when, finding.group, finding.call,
                                 finding.why.text);
  for (const FindingSite& site : finding.sites) {
    text += fmt::format("{} {}\n", name_of(site.role), site.label);
  }
  for (const RankAction& action : finding.did) {
    text += fmt::format("{} call {} {}\n", action.ranks.text(), action.call, action.operation);
  }
  for (const Way& way : finding.why.ways) {
    text += fmt::format("{} {}\n", way.ranks.text(), way.value);
  }
  for (const auto* lines : {&finding.follows, &finding.fix, &finding.python, &finding.also}) {
    text += fmt::format("{}\n", fmt::join(*lines, "\n"));
  }
  return without_placeholders(finding, text);
}

void expect_same(const std::vector<Finding>& findings, const std::vector<Finding>& of_all) {
  for (size_t index = 0; index < std::min(findings.size(), of_all.size()); ++index) {
    if (text_of(findings[index]) != text_of(of_all[index])) {
      RC_FAIL(fmt::format("{}\nwith every rank:\n{}", text_of(findings[index]),
                          text_of(of_all[index])));
    }
  }
  RC_ASSERT(findings.size() == of_all.size());
}

/// `least_folded`: the share of cases in which some rank runs for others.
void check_classes(const char* property, int cases, const rc::Gen<WideCase>& wides,
                   double least_folded) {
  Distribution distribution;
  const bool held = holds(property, cases, [&] {
    const WideCase wide = *wides;
    distribution.draw();
    const Runs runs(wide, false);
    const auto& [run, of_all] = runs;
    for (const Problem& problem : of_all.problems) {
      RC_LOG() << problem.message << "\n";
    }
    RC_ASSERT(run.ran == of_all.ran);
    if (!of_all.ran) {
      distribution.count("not run");
      return;
    }
    distribution.count_case();
    RC_ASSERT(of_all.preparation.options.classes == nullptr);
    const bool is_folded = run.preparation.options.classes != nullptr;
    distribution.count(is_folded ? "some run for others" : "each runs");
    if (is_folded && wide.text.find("faults") != std::string::npos) {
      distribution.count("some run for others beside faults");
      distribution.count(of_all.result.hung ? "hung, folded" : "went on beside faults, folded");
    }
    if (cli::ran_out_of_memory(of_all)) {
      distribution.count(is_folded ? "out of memory, folded" : "out of memory");
    }
    distribution.count(fmt::format("{}{}", run.preparation.strategy, is_folded ? " folded" : ""));
    expect_same_end(run, of_all);
    if (leaves_steps_out(run) || leaves_steps_out(of_all)) {
      // Fewer ranks may be seen to repeat themselves some steps earlier.
      distribution.count("leaves steps out");
      const Runs of_all_steps(wide, true);
      expect_same_end(of_all_steps.run, of_all_steps.of_all);
      expect_same_operations(of_all_steps.run, of_all_steps.of_all);
    } else {
      expect_same_operations(run, of_all);
    }
    expect_same_results(run, cli::measure(run), of_all, cli::measure(of_all));
    expect_same(cli::findings_of(run, cli::World::simulated),
                cli::findings_of(of_all, cli::World::simulated));
  });
  distribution.print(property);
  REQUIRE(held);
  CHECK(distribution.share("some run for others") >= least_folded);
  CHECK(distribution.share("not run") <= 0.1);
}

}  // namespace

TEST_CASE("a rank that runs for others does what they would have done") {
  check_classes("a rank that runs for others does what they would have done", 120, wide_cases(),
                0.15);
}

TEST_CASE("a rank that no fault strikes may run for others beside those that are") {
  check_classes("a rank that no fault strikes may run for others beside those that are", 100,
                wide_faulty_cases(), 0.1);
}

TEST_CASE("a rank that exchanges by Bagua, Horovod or averages may run for others, too") {
  check_classes("a rank that exchanges by Bagua, Horovod or averages may run for others, too", 80,
                wide_exchange_cases(), 0.05);
}

}  // namespace rank_classes_test
