#include "cli/commands/strategy_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/commands/case_request.hpp"
#include "cli/input_files.hpp"
#include "cli/render/json.hpp"
#include "cli/render/render_strategies.hpp"
#include "model/core/ensure.hpp"
#include "model/trainer/framework/compared_strategies.hpp"
#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/framework/precision_choice.hpp"
#include "model/trainer/prepare/compared_launch.hpp"
#include "model/trainer/prepare/prepare.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/trainer/prepare/proposed_strategy.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"
#include "rehearsal/run/one_run.hpp"
#include "rehearsal/sweep/sweep_row_of.hpp"
#include "rehearsal/text/shell_words.hpp"

namespace lockstep::cli {

namespace {

/// A row of the table of all strategies, for one case.
struct KnownStrategy {
  std::string name;  ///< its label before the case's optimizer changed it
  ComparedStrategy compared;
};

// "ddp,{FSDPStrategy: {auto_wrap_policy: blocks, cpu_offload: true}}": commas inside of braces and
// brackets separate arguments.
std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char letter : list) {
    depth += letter == '{' || letter == '[' ? 1 : letter == '}' || letter == ']' ? -1 : 0;
    if (letter == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  for (std::string& part : parts) {
    const size_t first = std::min(part.find_first_not_of(' '), part.size());
    part = part.substr(first, part.find_last_not_of(' ') + 1 - first);
  }
  return parts;
}

// "horovod by horovodrun, Adasum": behind the strategy, in front of what else the label says of it.
std::string label_by(const std::string& label, const std::string& launcher) {
  const size_t comma = label.starts_with("{") ? std::string::npos : label.find(", ");
  const size_t end = std::min(comma, label.size());
  return label.substr(0, end) + " by " + launcher + label.substr(end);
}

bool is_called(const KnownStrategy& known, const std::string& text) {
  return std::ranges::any_of(std::initializer_list<std::string>{known.name, known.compared.label},
                             [&text](const std::string& label) {
                               return text == label || text == label_by(label, "horovodrun") ||
                                      text == label_by(label, "Lightning");
                             });
}

// The names of the table may hold commas ("fsdp by blocks, hybrid"): the longest counts. What is
// none of them is a strategy as a scenario writes it.
std::vector<ComparedStrategy> named_in(const std::string& list,
                                       const std::vector<KnownStrategy>& known) {
  std::vector<ComparedStrategy> named;
  const std::vector<std::string> parts = parts_of(list);
  for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    const KnownStrategy* found = nullptr;
    std::string text;
    end = begin + 1;
    for (size_t behind = begin; behind < parts.size(); ++behind) {
      text += (text.empty() ? "" : ", ") + parts[behind];
      const auto row = std::ranges::find_if(
          known, [&text](const KnownStrategy& one) { return is_called(one, text); });
      if (row != known.end()) {
        found = &*row;
        end = behind + 1;
      }
    }
    const ComparedStrategy one =
        found == nullptr ? ComparedStrategy{parts[begin], parts[begin]} : found->compared;
    if (!one.label.empty() &&
        std::ranges::find(named, one.label, &ComparedStrategy::label) == named.end()) {
      named.push_back(one);
    }
  }
  return named;
}

// What offloads, in the form that takes the optimizer of the case.
void take_optimizer(const Scenario& scenario, const Version& lightning,
                    ComparedStrategy& compared) {
  for (const StrategyEntry& entry : strategies().entries()) {
    const auto state = std::ranges::find(entry.divided, compared.strategy, &DividedState::name);
    if (state == entry.divided.end() || !state->offloads) {
      continue;
    }
    const ProposedStrategy proposed =
        proposed_strategy(entry, *state, scenario, deepspeed_release(scenario, lightning));
    if (proposed.optimizer) {
      compared.label += fmt::format(", {}", proposed.optimizer->name);
      compared.settings.push_back("optimizer=" + text_with(*proposed.optimizer, {}));
    } else if (proposed.strategy.name != compared.strategy) {
      compared.label += ", any optimizer";
      compared.whole = proposed.text;
    }
  }
}

/// The case as it is written.
struct WrittenCase {
  std::shared_ptr<const Scenario> scenario;  ///< null: there is none with a trainer
  Placement placement{};
};

WrittenCase written_case(const CaseSource& source) {
  for (const Job& job : collect(source).jobs) {
    if (job.asked && job.scenario->trainer) {
      return {job.scenario, prepare(*job.scenario, strategies()).placement};
    }
  }
  return {};
}

// For the devices, the batches and the precision of the case as it is.
std::vector<KnownStrategy> all_for(const WrittenCase& written) {
  std::vector<KnownStrategy> all;
  if (!written.scenario) {
    for (const ComparedStrategy& strategy : strategies_to_compare({})) {
      all.push_back({strategy.label, strategy});
    }
    return all;
  }
  const Placement& placement = written.placement;
  const PrecisionChoice& precision = placement.precision;
  const bool is_mixed = precision.parameters != precision.activations;
  ComparedTraining training;
  training.lightning = placement.lightning;
  training.device = placement.cpu ? DeviceType::cpu : placement.device;
  training.devices = std::ssize(placement.devices);
  training.nodes = placement.nodes;
  const std::optional<DataSpec>& data = written.scenario->data;
  const LoaderSpec* loader = data && !data->train.empty() ? &data->train.front() : nullptr;
  training.batch_size = loader == nullptr ? 0 : value_or(loader->batch_size, int64_t{1});
  training.narrow = is_mixed ? name_of(precision.activations) : "";
  for (const ComparedStrategy& strategy : strategies_to_compare(training)) {
    all.push_back({strategy.label, strategy});
    take_optimizer(*written.scenario, placement.lightning, all.back().compared);
  }
  return all;
}

std::vector<ComparedStrategy> asked_for(const std::string& strategies, const WrittenCase& written) {
  const std::vector<KnownStrategy> known = all_for(written);
  if (strategies != "all") {
    return named_in(strategies, known);
  }
  std::vector<ComparedStrategy> all;
  std::ranges::transform(known, std::back_inserter(all), &KnownStrategy::compared);
  return all;
}

Answer wrong_use(const std::string& message) {
  return {"", fmt::format("error: {}\n", message), ExitCode::usage};
}

/// One job for each strategy; `wrong`: what the file or a name gives in place of them.
struct StrategyJobs {
  std::vector<Job> jobs;
  std::vector<std::string> notes;  ///< by job; empty: nothing but the strategy is another
  std::vector<ComparedLaunch> launches;
  std::optional<Answer> wrong{};
};

/// A precision that is written as 2.x does and meets a strategy of 1.x, whose last release is taken
/// where the scenario names none.
struct OlderPrecision {
  std::string setting;  ///< KEY=VALUE; empty: it is written as that release does
  std::string note;
};

OlderPrecision older_precision(const Scenario& scenario) {
  if (!scenario.trainer->precision || version_asked(scenario, "lightning")) {
    return {};
  }
  const std::string& asked = scenario.trainer->precision->value;
  const std::string_view older = precision_before_2_0(asked);
  const Version lightning = prepare(scenario, strategies()).placement.lightning;
  if (older.empty() || lightning >= v2_0) {
    return {};
  }
  return {
      fmt::format("trainer.precision={}", older),
      fmt::format("by Lightning 1.x, the last that has it, with `precision: {}`, which 2.x calls "
                  "{}",
                  older, asked)};
}

// "by Lightning: --set launcher=lightning --set trainer.devices=8"
std::string launch_text(const ComparedLaunch& launch) {
  if (launch.by.empty()) {
    return "";
  }
  std::string text = fmt::format("by {}:", launch.by);
  for (const std::string& setting : launch.settings) {
    const bool is_quoted = setting.find(' ') != std::string::npos;
    text += is_quoted ? fmt::format(" --set '{}'", setting) : " --set " + setting;
  }
  return text;
}

StrategyJobs jobs_of(const Request& request, const CaseSource& source, const WrittenCase& written,
                     const std::vector<ComparedStrategy>& compared) {
  StrategyJobs made;
  for (const ComparedStrategy& strategy : compared) {
    CaseSource with_strategy = source;
    with_strategy.set.push_back("trainer.strategy=" + strategy.text());
    with_strategy.set.insert(with_strategy.set.end(), strategy.settings.begin(),
                             strategy.settings.end());
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
    const Scenario& scenario = *collected.jobs.front().scenario;
    OlderPrecision older = older_precision(scenario);
    ComparedLaunch launch =
        launch_to_compare(scenario, prepare(scenario, strategies()).placement, written.placement);
    std::vector<std::string> further = launch.settings;
    if (!older.setting.empty()) {
      further.push_back(older.setting);
    }
    if (!further.empty()) {
      with_strategy.set.insert(with_strategy.set.end(), further.begin(), further.end());
      collected = collect(with_strategy);
      std::erase_if(collected.jobs, [](const Job& job) { return !job.asked; });
      ensure(collected.jobs.size() == 1, "the same case, as another strategy takes it");
    }
    made.notes.push_back(std::move(older.note));
    made.launches.push_back(std::move(launch));
    made.jobs.push_back(std::move(collected.jobs.front()));
  }
  return made;
}

// Values are computed, and compared with those of one device, by another command.
std::string next_line(const CaseSource& source, const std::string& strategies) {
  return fmt::format("next: {} --strategies {}\n", command_of(source, {}, "verify"),
                     shell_word(strategies));
}

}  // namespace

Answer compare_strategies(const Request& request, const RehearseRequest& how, Judges judges,
                          const Style& style) {
  const CaseSource source = source_of(request, request.arguments.front());
  const WrittenCase written = written_case(source);
  const std::vector<ComparedStrategy> compared = asked_for(request.strategies, written);
  if (compared.empty()) {
    return wrong_use("--strategies takes names, or all");
  }
  StrategyJobs made = jobs_of(request, source, written, compared);
  if (made.wrong) {
    return std::move(*made.wrong);
  }
  RehearseRequest watched = how;
  watched.advise = false;
  watched.progress = std::make_shared<Progress>(request.progress || style.progress);
  const bool verifies = request.command == "verify";
  Answer answer;
  answer.leaves_threads = !rehearse_all(made.jobs, watched, judges, threads_of(request));
  watched.progress->end();
  std::vector<UnderStrategy> rows;
  std::vector<const Rehearsal*> results;
  for (size_t index = 0; index < made.jobs.size(); ++index) {
    Rehearsal& result = made.jobs[index].result;
    const std::string& note = made.notes[index];
    if (!note.empty()) {
      result.problems.push_back(
          {Problem::Kind::note, result.scenario->trainer->precision->place, note});
    }
    const ComparedLaunch& launch = made.launches[index];
    const std::string& label = compared[index].label;
    rows.push_back({launch.by.empty() ? label : label_by(label, launch.by),
                    &result,
                    {compared[index].note, note},
                    launch_text(launch)});
    if (!launch.by.empty()) {
      result.problems.push_back({Problem::Kind::note, result.scenario->launcher->place,
                                 "for the same processes " + launch_text(launch)});
    }
    results.push_back(&result);
  }
  answer.text = request.format == Format::json
                    ? text_of(json_of(results, request))
                    : render_strategies(rows, verifies, style) +
                          (verifies ? "" : next_line(source, request.strategies));
  mark_interrupted(answer, *how.deadline);
  return answer;
}

}  // namespace lockstep::cli
