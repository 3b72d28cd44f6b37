#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rehearsal/case_workers.hpp"
#include "rehearsal/judge/judge.hpp"
#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

/// One case to rehearse, and what came of it.
struct Job {
  CaseSource source;
  std::shared_ptr<const Scenario> scenario;
  std::shared_ptr<const Sources> sources;
  bool asked = true;      ///< false: only because an expectation of another case names it
  bool left_out = false;  ///< not rehearsed
  /// Why: the world that was asked for does not take it; empty: other cases cover what it does.
  std::string refusal{};
  Rehearsal result{};
};

/// The cases of a file and those that their expectations name. Nothing but diagnostics when the
/// file is not a scenario.
struct Collected {
  std::vector<Job> jobs;
  std::vector<Diagnostic> diagnostics;
  Sources sources;
  std::vector<std::string> files{};  ///< that were read
};
Collected collect(const CaseSource& source);

/// Rehearses one case; what input can do and no reader can know beforehand (sizes beyond 64 bits,
/// more memory than there is) becomes a problem of the case.
Rehearsal rehearse_case(const CaseWork& work);

/// Rehearses all jobs that are not left out on this many threads and judges their expectations.
/// Results do not depend on the number of threads. An exception of one job is thrown once all have
/// ended. False: some job did not notice the end of its time, and threads still run
/// (Answer::leaves_threads).
bool rehearse_all(std::vector<Job>& jobs, const RehearseRequest& request, Judges judges,
                  int threads);

}  // namespace lockstep::cli
