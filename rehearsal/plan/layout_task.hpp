#pragma once

#include <optional>

#include "rehearsal/case_source.hpp"
#include "rehearsal/plan/layouts.hpp"

namespace lockstep::cli {

/// What a scenario asks to be laid out, and the machine that it names.
struct TaskOfScenario {
  LayoutTask task{};
  std::string model;      ///< "llama2-7b (6.74 B parameters)"
  std::string machine;    ///< "64 x h100-sxm5-80gb on 8 nodes"
  std::string why_not{};  ///< empty: it can be
};
/// `samples`: of a step; none: what ddp with the scenario's batch size comes to.
TaskOfScenario task_of(const CaseSource& source, std::optional<int64_t> samples);

}  // namespace lockstep::cli
