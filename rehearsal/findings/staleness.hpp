#pragma once

#include <optional>
#include <string>

#include "model/strategy/staleness.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Of the gradients that all servers of the run received; none: there is no server.
std::optional<Staleness> staleness_of(const OneRun& run);

/// A line for people, with its end; empty without servers.
std::string staleness_text(const OneRun& run);

}  // namespace lockstep::cli
