#pragma once

#include "io/scenario/reader/reader.hpp"
#include "model/scenario/scenario.hpp"

namespace lockstep {

/// Finds the lines of each `finding CODE at KEY` in the merged scenario `root`. Complains about a
/// place that is neither a key that is written there, nor a line of a file, nor the `at` of a
/// statement: no finding could have it.
void find_expected_places(Reader& reader, const Node& root, Scenario& scenario);

}  // namespace lockstep
