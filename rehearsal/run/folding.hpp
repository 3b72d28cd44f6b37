#pragma once

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// What of a simulation may stand for more of its kind; false once a run found it to be wrong.
struct Folding {
  bool links = true;    ///< those of nodes that are alike
  bool columns = true;  ///< of neighbours that are alike
  bool ranks = true;
};

/// Whether the run is an answer; else `folding` says what may stand for more in the next one.
/// `tried`: what might in this one.
bool is_answer(const OneRun& run, const Folding& tried, Folding& folding);

}  // namespace lockstep::cli
