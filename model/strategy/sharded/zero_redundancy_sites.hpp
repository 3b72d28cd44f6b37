#pragma once

#include <string_view>

namespace lockstep::zero_redundancy_sites {

// What its operations are called in findings.
inline constexpr std::string_view update = "ZeroRedundancyOptimizer: step of the own parameters";
inline constexpr std::string_view send_parameters =
    "ZeroRedundancyOptimizer: broadcast of updated parameters";
inline constexpr std::string_view send_optimizer =
    "ZeroRedundancyOptimizer: broadcast of an optimizer state (consolidate_state_dict)";

inline constexpr std::string_view every_step[] = {update, send_parameters, send_optimizer};

}  // namespace lockstep::zero_redundancy_sites
