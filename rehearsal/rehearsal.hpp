#pragma once

#include <memory>
#include <string>
#include <vector>

#include "properties/finding.hpp"
#include "properties/logged/metric_is_global.hpp"
#include "rehearsal/case_source.hpp"
#include "rehearsal/exit_code.hpp"
#include "rehearsal/results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Coverage of an exploration.
struct Coverage {
  int64_t schedules = 0;
  bool complete = true;  ///< every schedule of what is free was run
  bool free = false;     ///< several schedules were possible
  std::vector<int32_t> world_sizes;
  int64_t epochs = 0;
  std::vector<std::string> looked_at;
  std::vector<std::string> not_looked_at;
};

/// One expectation of the scenario against what came out.
struct Judged {
  std::string text;
  bool met = false;
  bool judged = true;  ///< false: this command cannot judge it
  std::string actual;  ///< what came out instead; why it is not judged
  SourcePlace place{};
};

/// Everything that one case gave.
struct Rehearsal {
  std::shared_ptr<const Scenario> scenario;
  World world = World::simulated;
  std::shared_ptr<const Sources> sources;  ///< texts of the files, for excerpts
  OneRun run;                              ///< the first schedule of the scenario's own world size
  /// Of a job whose launcher starts ranks again, what its last attempt ran; null: no such job.
  std::shared_ptr<const Scenario> attempted{};
  std::vector<Problem> problems;  ///< all of them; notes too
  std::vector<Finding> findings;
  std::vector<GlobalMetric> logged;  ///< at the end of the last epoch, by key
  Sites sites;
  Results results;
  Coverage coverage;
  std::vector<Judged> expectations;
  std::vector<std::string> drawn_faults;  ///< beside the scenario, as objects of its list
  std::string undecided;                  ///< a limit was hit; empty: the answer stands
  std::string sizes_left_out;  ///< the first of `verify.world_sizes` not explored, and why
  /// Rounding explains how far final weights are from those of one device, over so many steps.
  bool rounding_carries = false;

  bool hung = false;  ///< some explored order hangs
  bool invalid() const;
  bool unsupported() const;
  bool refused() const;
  bool ran() const { return run.ran; }
  /// The scenario that `run` ran.
  const Scenario& scenario_of_run() const { return attempted ? *attempted : *scenario; }
  /// Why what was measured is no prediction: "this run hangs"; empty: it is one.
  std::string why_no_prediction() const;
  int64_t count(Level level) const;
};

/// Some rank ran out of device memory, or the ranks of some node need more than its host has.
bool ran_out_of_memory(const OneRun& run);
/// Adds those that are not known yet, with what was different about the run that shows them.
void merge_findings(Rehearsal& rehearsal, std::vector<Finding> more, const std::string& when);

/// Whether a finding counts as a failure: not silenced by `verify.ignore`; warnings when strict.
bool fails(const Rehearsal& rehearsal, const Finding& finding, bool strict);
/// The reason that `verify.ignore` gives for this code; empty: none.
std::string ignore_reason(const Scenario& scenario, const std::string& code);

/// The exit code of `run` and `verify` for one case.
ExitCode exit_code_of(const Rehearsal& rehearsal, bool strict);
/// "ok", "findings", "undecided", and for what could not run "invalid", "unsupported".
std::string verdict_of(const Rehearsal& rehearsal, bool strict);

}  // namespace lockstep::cli
