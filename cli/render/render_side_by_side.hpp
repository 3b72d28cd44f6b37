#pragma once

#include <string>
#include <vector>

#include "cli/render/style.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// One line for each case of a file: step time, throughput, exposed communication and memory, so
/// that strategies can be compared, or the verdict on a case that gives no prediction. Empty where
/// there are fewer than two trainings, or none could begin.
std::string render_side_by_side(const std::vector<const Rehearsal*>& cases, const Style& style);

}  // namespace lockstep::cli
