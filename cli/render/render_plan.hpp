#pragma once

#include <string>
#include <vector>

#include "cli/render/style.hpp"
#include "rehearsal/plan/layout_task.hpp"
#include "rehearsal/plan/plan_search.hpp"

namespace lockstep::cli {

/// What `plan` shows.
struct ShownPlan {
  const TaskOfScenario& of;
  const PlanResult& result;
  std::vector<std::string> commands;  ///< that run the first layouts of `result.best` again
};

std::string render_plan(const ShownPlan& plan, const Style& style);
std::string plan_csv(const ShownPlan& plan);
std::string plan_json(const ShownPlan& plan, int exit_code);

}  // namespace lockstep::cli
