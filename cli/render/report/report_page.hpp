#pragma once

#include <string>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// A run as one HTML page that needs nothing else. `command`: that repeats it.
std::string report_page(const Rehearsal& rehearsal, const std::string& command);
/// The drawings of a step alone, as an SVG file.
std::string plot_of_run(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
