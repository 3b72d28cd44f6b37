#pragma once

#include "io/sweep/sweep_row.hpp"
#include "rehearsal/rehearse.hpp"
#include "rehearsal/sweep/sweep_cases.hpp"

namespace lockstep::cli {

/// Loads and rehearses one case, as `run` does without its suggestions and expectations. Whatever
/// goes wrong is said in the row.
SweepRow run_sweep_case(const CaseSource& source, const SweepCases& cases, int64_t number,
                        const RehearseRequest& request);

/// The figures of a rehearsal, by their names; where ranks differ, the largest of all ranks.
std::vector<std::pair<std::string, Value>> sweep_figures(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
