#pragma once

#include <set>
#include <string>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// The names of a program that hold values of more than one epoch, as LS312 says of the statement
/// that reads them: lists, and what `compute` binds.
std::set<std::string> stale_names(const OneRun& run);

/// The stale names that one statement reads or binds.
std::set<std::string> stale_names_at(const OneRun& run, SiteId site);

/// Whether a logged value is made of one of them.
bool logs_one_of(const OneRun& run, const std::set<std::string>& names);

}  // namespace lockstep::cli
