#pragma once

#include <map>
#include <string>

#include "model/core/site.hpp"
#include "model/scenario/program_spec.hpp"

namespace lockstep {

/// Names a statement by its place in the scenario, or by its keyword where it has none.
SiteId site_of(const Statement& statement);
/// Names the place of an expression's part, such as `unknown`.
SiteId site_of(const SourcePlace& place);

/// Names an `unknown` in an expression.
SiteId unknown_site_of(const SourcePlace& place);

/// A site at a place of the scenario.
Site site_at(const SourcePlace& place, std::string_view description);

/// Names the communication of gradients that goes with a statement's own.
SiteId backward_site_of(const Statement& statement);

/// Whether the calls of this site are made when its hook is over: in the backward of what the
/// statement gave, or at the end of the epoch.
bool runs_outside_of_its_hook(const Site& site);

/// Every statement of every hook, each with the `if` or `repeat` that directly encloses it.
Sites sites_of(const ProgramSpec& program);

/// The reductions of one logged key.
struct LogSites {
  SiteId step{};   ///< on_step, at once
  SiteId epoch{};  ///< on_epoch, at the end of it: reached by ranks with any number of steps
};

/// Names the reductions of each logged key: ranks that log a key in different statements reduce the
/// same thing. The place is that of the first statement that logs it; for a key of log_dict, of its
/// value.
std::map<std::string, LogSites> add_log_sites(const ProgramSpec& program, Sites& sites);

}  // namespace lockstep
