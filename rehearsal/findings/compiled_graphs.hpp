#pragma once

#include <string>
#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Graphs that XLA compiles in the process that compiles most; empty: nothing is compiled.
std::vector<CompiledGraph> compiled_graphs(const OneRun& run);
/// The same as a line for people, which says what each of them is; empty: none.
std::string compiled_graphs_text(const OneRun& run);

/// LS404, a warning: a batch of another size than the others of its loop makes XLA compile again.
std::vector<Finding> recompilations(const OneRun& run);

}  // namespace lockstep::cli
