#pragma once

#include <string>
#include <vector>

#include "cli/render/style.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// One line for each case of a file: step time, throughput, exposed communication and memory, so
/// that strategies can be compared. Empty where fewer than two of them have trained.
std::string render_side_by_side(const std::vector<const Rehearsal*>& cases, const Style& style);

}  // namespace lockstep::cli
