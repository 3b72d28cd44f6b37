#pragma once

#include <string>
#include <vector>

#include "model/strategy/local_model/expert_load.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Of each mixture of experts, the choices of all ranks' tokens in training; empty where values are
/// not computed.
std::vector<ExpertLoad> expert_loads(const OneRun& run);

/// The load of the busiest expert over the mean; 1 where there is none.
double imbalance_of(const ExpertLoad& load);

/// A line for each of the first layers, for people; empty without experts.
std::string expert_load_text(const OneRun& run);

}  // namespace lockstep::cli
