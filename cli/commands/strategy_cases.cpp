#include "cli/commands/strategy_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/commands/case_request.hpp"
#include "cli/input_files.hpp"
#include "cli/render/json.hpp"
#include "cli/render/render_strategies.hpp"
#include "model/trainer/framework/strategy_choice.hpp"

namespace lockstep::cli {

namespace {

std::vector<std::string> names_in(const std::string& list) {
  if (list == "all") {
    return strategies_to_compare();
  }
  std::vector<std::string> names;
  std::istringstream parts(list);
  for (std::string name; std::getline(parts, name, ',');) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

Answer wrong_use(const std::string& message) {
  return {"", fmt::format("error: {}\n", message), ExitCode::usage};
}

/// One job for each strategy; `wrong`: what the file or a name gives in place of them.
struct StrategyJobs {
  std::vector<Job> jobs;
  std::optional<Answer> wrong{};
};

StrategyJobs jobs_of(const Request& request, const std::vector<std::string>& names) {
  StrategyJobs made;
  const CaseSource source = source_of(request, request.arguments.front());
  for (const std::string& name : names) {
    CaseSource with_strategy = source;
    with_strategy.set.push_back("trainer.strategy=" + name);
    with_strategy.option_of_key["trainer.strategy"] = "--strategies";
    Collected collected = collect(with_strategy);
    check_outputs(request, collected);
    if (!collected.diagnostics.empty()) {
      made.wrong = bad_input(request, collected);
      return made;
    }
    std::erase_if(collected.jobs, [](const Job& job) { return !job.asked; });
    if (collected.jobs.size() != 1) {
      made.wrong = wrong_use(fmt::format("--strategies compares one case: write {}:{}", source.path,
                                         collected.jobs.front().scenario->name));
      return made;
    }
    if (!collected.jobs.front().scenario->trainer) {
      made.wrong = wrong_use("--strategies needs a scenario with a trainer");
      return made;
    }
    made.jobs.push_back(std::move(collected.jobs.front()));
  }
  return made;
}

}  // namespace

Answer compare_strategies(const Request& request, const RehearseRequest& how, Judges judges,
                          const Style& style) {
  const std::vector<std::string> names = names_in(request.strategies);
  if (names.empty()) {
    return wrong_use("--strategies takes names, or all");
  }
  StrategyJobs made = jobs_of(request, names);
  if (made.wrong) {
    return std::move(*made.wrong);
  }
  RehearseRequest watched = how;
  watched.advise = false;
  watched.progress = std::make_shared<Progress>(request.progress || style.progress);
  Answer answer;
  answer.leaves_threads = !rehearse_all(made.jobs, watched, judges, threads_of(request));
  watched.progress->end();
  std::vector<UnderStrategy> rows;
  std::vector<const Rehearsal*> results;
  for (size_t index = 0; index < made.jobs.size(); ++index) {
    rows.push_back({names[index], &made.jobs[index].result});
    results.push_back(&made.jobs[index].result);
  }
  answer.text = request.format == Format::json
                    ? text_of(json_of(results, request))
                    : render_strategies(rows, request.command == "verify", style);
  mark_interrupted(answer, *how.deadline);
  return answer;
}

}  // namespace lockstep::cli
