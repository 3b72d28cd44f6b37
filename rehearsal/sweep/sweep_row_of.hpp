#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/sweep/sweep_row.hpp"
#include "rehearsal/rehearse.hpp"
#include "rehearsal/sweep/sweep_cases.hpp"

namespace lockstep::cli {

/// The line that runs the case with these settings, as the shell takes it.
std::string command_of(const CaseSource& source, const std::vector<std::string>& settings,
                       std::string_view command = "run");

/// Loads and rehearses one case, as `run` does without its suggestions and expectations. Whatever
/// goes wrong is said in the row.
SweepRow run_sweep_case(const CaseSource& source, const SweepCases& cases, int64_t number,
                        const RehearseRequest& request);

/// The figures of a rehearsal, by their names; where ranks differ, the largest of all ranks.
std::vector<std::pair<std::string, Value>> sweep_figures(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
