#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

/// One case to rehearse on a thread of its own. Owns all that the thread uses, because a thread
/// that does not notice the end of its time outlives whoever waited for it.
struct CaseWork {
  CaseSource source;
  std::shared_ptr<const Scenario> scenario;
  std::shared_ptr<const Sources> sources;
  RehearseRequest request;  ///< with limits of its own
};

/// What a case gives when it ends without having run to its end.
Rehearsal undecided_rehearsal(const CaseWork& work, const std::string& why);

struct CaseResults {
  std::vector<Rehearsal> rehearsals;  ///< one per case, in order
  /// Threads still run: the process must end without unwinding what they use.
  bool leaves_threads = false;
  std::exception_ptr failure;  ///< of the first case that threw one, else null
};

/// What cases that have worked for so long get beyond the deadline to notice it, and to say what
/// they have: the longer a run was, the longer it takes to read it.
std::chrono::milliseconds grace_after(Deadline::Clock::duration work);

/// Looks after threads that work from now on: returns once all have ended, or have had the deadline
/// and the grace behind it. An interruption by the user ends the deadline. `wait_until_all_ended`
/// waits for a moment, and says whether they have. True: the user has interrupted.
bool attend(const std::function<bool()>& wait_until_all_ended, const Deadline& deadline);

/// Calls `rehearse` for each case on this many threads, and returns when all have ended. Once the
/// deadline has passed (also because the user interrupts: SIGINT, SIGTERM, SIGHUP), cases have a
/// further grace; those that do not end in it are undecided, and their threads are left. After an
/// exception no further case begins.
CaseResults run_cases(std::vector<CaseWork> cases,
                      const std::function<Rehearsal(const CaseWork&)>& rehearse,
                      const Deadline& deadline, int threads);

}  // namespace lockstep::cli
