#pragma once

#include <string>

#include "cli/render/json.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// The attempts of an elastic launcher, what restarts cost, and what is expected at a failure rate;
/// empty where no rank would be started again.
std::string render_elastic(const Rehearsal& rehearsal);
/// Its restarts in one line, without times; empty: there was none.
std::string restarts_line(const Rehearsal& rehearsal);
/// The same as JSON; null: no such launcher.
Json elastic_json(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
