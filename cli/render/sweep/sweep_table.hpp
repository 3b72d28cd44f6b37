#pragma once

#include <string>
#include <vector>

#include "cli/render/style.hpp"
#include "explain/json_text.hpp"
#include "io/sweep/sweep_file.hpp"

namespace lockstep::cli {

/// The rows of a sweep that are shown, in order, and what they are of.
struct ShownSweep {
  SweepHeader header;
  std::vector<const std::string*> lines;
  int64_t done = 0;  ///< rows that there are, shown or not
};

/// Cases side by side: varied values, figures or why there are none, and the line that runs the
/// case again.
std::string sweep_table(const ShownSweep& sweep, const Style& style);
/// The same with all figures; the unit of a column is part of its name.
std::string sweep_csv(const ShownSweep& sweep);
Json sweep_json(const ShownSweep& sweep, int exit_code);

}  // namespace lockstep::cli
