#pragma once

#include <optional>
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

/// Where values are not computed: what memory and time of the mixtures are based on.
struct AssumedExpertLoad {
  std::vector<std::string> layers{};
  double imbalance = 1;     ///< of the busiest rank, where ranks divide experts; the greatest
  double dropped_part = 0;  ///< of all choices; the greatest
};
/// Nothing where values are computed, and without experts.
std::optional<AssumedExpertLoad> assumed_expert_load(const OneRun& run);

/// A line for each of the first layers (`verbose`: of all), or what is assumed of them, for people;
/// empty without experts.
std::string expert_load_text(const OneRun& run, bool verbose);

}  // namespace lockstep::cli
