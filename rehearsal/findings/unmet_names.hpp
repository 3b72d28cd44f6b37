#pragma once

#include <optional>
#include <string>
#include <vector>

#include "properties/rank_set.hpp"
#include "rehearsal/findings/guard_of_call.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// A name that some ranks have handed over to Horovod more often than others.
struct Unmet {
  SiteId site{};  ///< where one of those that wait did
  std::string name;
  RankSet waiting;
  RankSet missing;
  bool came_before = false;  ///< those that are missing have handed it over, but not as often
};

/// Of a program of its own, all; of a training, those of the first process set that has some. By
/// name.
std::vector<Unmet> unmet_of(const OneRun& run);

/// Those that the same ranks wait for as for the first one.
std::vector<Unmet> alike(const std::vector<Unmet>& all);

/// "allreduce.a, allreduce.b and 3 more".
std::string names_of(const std::vector<Unmet>& all);

/// "rank 2 never hands it over": what ranks leave out, of so many names.
std::string never_text(const Unmet& unmet, size_t names);

/// What lets all ranks hand a name over that a statement of some ranks does.
std::vector<std::string> remedy_for_unmet(const Unmet& unmet,
                                          const std::optional<GuardOfCall>& guard);

}  // namespace lockstep::cli
