#pragma once

#include "cli/render/over_time/utilization.hpp"
#include "cli/render/report/markup.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// The span of time that stands for a run: its steady step, or all of it where it takes none.
struct DrawnSpan {
  Time begin{};
  Time end{};
  bool is_step = false;
};
DrawnSpan drawn_span(const OneRun& run);

/// What rank 0 does in that span, on its streams and threads.
Drawing step_drawing(const Rehearsal& rehearsal);
/// What tensors hold on rank 0's device in that span.
Drawing memory_drawing(const Rehearsal& rehearsal);
/// The GPU of rank 0 over the whole run.
Drawing utilization_drawing(const Utilization& utilization, Time total);

}  // namespace lockstep::cli
