#include "rehearsal/rehearsal.hpp"

#include <algorithm>

#include "properties/diagnosis/shrink.hpp"
#include "rehearsal/run/node_memory.hpp"

namespace lockstep::cli {

namespace {

bool has_problem(const Rehearsal& rehearsal, Problem::Kind kind) {
  return std::any_of(rehearsal.problems.begin(), rehearsal.problems.end(),
                     [kind](const Problem& problem) { return problem.kind == kind; });
}

}  // namespace

bool Rehearsal::invalid() const { return has_problem(*this, Problem::Kind::invalid); }
bool Rehearsal::unsupported() const { return has_problem(*this, Problem::Kind::unsupported); }
bool Rehearsal::refused() const { return has_problem(*this, Problem::Kind::refused); }

int64_t Rehearsal::count(Level level) const {
  return std::count_if(findings.begin(), findings.end(),
                       [level](const Finding& finding) { return finding.level == level; });
}

bool ran_out_of_memory(const OneRun& run) {
  return std::any_of(run.result.ends.begin(), run.result.ends.end(),
                     [](const RankEnd& end) { return end.out_of_memory; }) ||
         exceeds_node_memory(run);
}

std::string Rehearsal::why_no_prediction() const {
  if (ran_out_of_memory(run)) {
    return "this run is out of memory";
  }
  if (!run.undecided.empty()) {
    return "this run was stopped: " + run.undecided;
  }
  if (hung || run.result.hung) {
    return "this run hangs";
  }
  const bool finished =
      std::all_of(run.result.ends.begin(), run.result.ends.end(),
                  [](const RankEnd& end) { return end.kind == RankEnd::Kind::finished; });
  return finished ? "" : "this run ends with an error";
}

std::string ignore_reason(const Scenario& scenario, const std::string& code) {
  if (scenario.verify) {
    for (const VerifySpec::Ignored& ignored : scenario.verify->ignore) {
      if (ignored.code == code) {
        return ignored.reason.empty() ? "verify.ignore" : ignored.reason;
      }
    }
  }
  return "";
}

void merge_findings(Rehearsal& rehearsal, std::vector<Finding> more, const std::string& when) {
  for (Finding& finding : more) {
    const bool known =
        std::any_of(rehearsal.findings.begin(), rehearsal.findings.end(),
                    [&](const Finding& other) { return same_defect(finding, other); });
    if (!known) {
      finding.when = when + (finding.when.empty() ? "" : ", " + finding.when);
      rehearsal.findings.push_back(std::move(finding));
    }
  }
  sort_findings(rehearsal.findings);
}

bool fails(const Rehearsal& rehearsal, const Finding& finding, bool strict) {
  const bool counts = finding.level == Level::error || (strict && finding.level == Level::warning);
  return counts && ignore_reason(*rehearsal.scenario, finding.code).empty();
}

ExitCode exit_code_of(const Rehearsal& rehearsal, bool strict) {
  if (rehearsal.invalid()) {
    return ExitCode::bad_input;
  }
  if (!rehearsal.run.world_failure.empty()) {
    // Nothing that was expected could come about.
    return rehearsal.run.world_is_damaged ? ExitCode::damaged_file : ExitCode::real_run_failed;
  }
  const bool failed =
      std::any_of(rehearsal.findings.begin(), rehearsal.findings.end(),
                  [&](const Finding& finding) { return fails(rehearsal, finding, strict); }) ||
      std::any_of(rehearsal.expectations.begin(), rehearsal.expectations.end(),
                  [](const Judged& expectation) { return expectation.judged && !expectation.met; });
  if (failed) {
    return ExitCode::findings;
  }
  if (rehearsal.unsupported()) {
    return ExitCode::missing_capability;
  }
  return rehearsal.undecided.empty() ? ExitCode::ok : ExitCode::undecided;
}

std::string verdict_of(const Rehearsal& rehearsal, bool strict) {
  switch (exit_code_of(rehearsal, strict)) {
    case ExitCode::ok: return "ok";
    case ExitCode::findings: return "findings";
    case ExitCode::bad_input: return "invalid";
    case ExitCode::missing_capability: return "unsupported";
    case ExitCode::real_run_failed:
    case ExitCode::damaged_file: return "failed";
    default: return "undecided";
  }
}

}  // namespace lockstep::cli
