// `explain SCENARIO --env`: with what each rank is started.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands/case_request.hpp"
#include "cli/commands/commands.hpp"
#include "cli/input_files.hpp"
#include "cli/render/json.hpp"
#include "model/expression/evaluation_error.hpp"
#include "model/trainer/prepare/prepare.hpp"
#include "rehearsal/jobs.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

namespace {

using Entries = std::vector<EnvironmentEntry>;

/// One rank as it is started.
struct RankStart {
  Place place;
  std::string device;
  Entries environment;
  std::string line;
};

// An external launcher overwrites existing values; Lightning's own keeps them.
Entries environment_with(const std::vector<EnvironmentVariable>& own, const Launch& launch,
                         const Place& place) {
  Entries entries = environment_of(launch, static_cast<int32_t>(place.rank.value));
  for (const EnvironmentVariable& variable : own) {
    const auto known =
        std::find_if(entries.begin(), entries.end(),
                     [&](const EnvironmentEntry& entry) { return entry.name == variable.name; });
    if (known == entries.end()) {
      entries.push_back({variable.name, value_on(variable, place)});
    } else if (!launch.is_external()) {
      known->value = value_on(variable, place);
    }
  }
  return entries;
}

std::vector<RankStart> starts_of(const Preparation& preparation) {
  const Placement& placement = preparation.placement;
  const Launch& launch = placement.launch;
  const int32_t driven = preparation.options.devices_per_rank;
  std::vector<RankStart> starts;
  for (int32_t rank = 0; rank < launch.world_size(); ++rank) {
    RankStart start{launch.place_of(rank), "", {}, start_line(launch, rank)};
    start.environment = environment_with(preparation.scenario->env, launch, start.place);
    const auto local = static_cast<size_t>(start.place.local_rank);
    if (placement.cpu) {
      start.device = "cpu";
    } else if (driven > 1) {
      start.device = fmt::format("{} GPUs", driven);
    } else if (local < placement.devices.size()) {
      start.device = fmt::format("GPU {}", placement.devices[local]);
    }
    starts.push_back(std::move(start));
  }
  return starts;
}

const std::string* value_in(const Entries& entries, const std::string& name) {
  for (const EnvironmentEntry& entry : entries) {
    if (entry.name == name) {
      return &entry.value;
    }
  }
  return nullptr;
}

bool is_common(const std::vector<RankStart>& starts, const EnvironmentEntry& entry) {
  return std::all_of(starts.begin(), starts.end(), [&](const RankStart& start) {
    const std::string* value = value_in(start.environment, entry.name);
    return value != nullptr && *value == entry.value;
  });
}

std::string table_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      line += fmt::format("  {:<{}}", row[column], widths[column]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string text_of_starts(const Preparation& preparation, const std::vector<RankStart>& starts) {
  const Launch& launch = preparation.placement.launch;
  std::string out = fmt::format("{} process{} on {} node{}, started by {}\n", starts.size(),
                                starts.size() == 1 ? "" : "es", launch.nodes,
                                launch.nodes == 1 ? "" : "s", launch.launcher);
  std::vector<std::vector<std::string>> common;
  std::vector<std::vector<std::string>> own = {{"rank", "node", "device"}};
  for (const EnvironmentEntry& entry : starts.front().environment) {
    if (is_common(starts, entry)) {
      common.push_back({entry.name, entry.value});
    } else {
      own.front().push_back(entry.name);
    }
  }
  for (const RankStart& start : starts) {
    std::vector<std::string> row = {std::to_string(start.place.rank.value),
                                    std::to_string(start.place.node), start.device};
    for (size_t column = 3; column < own.front().size(); ++column) {
      const std::string* value = value_in(start.environment, own.front()[column]);
      row.push_back(value == nullptr ? "" : *value);
    }
    own.push_back(std::move(row));
  }
  if (!common.empty()) {
    out += "\nthe same on every rank\n" + table_of(common);
  }
  out += "\n" + table_of(own) + "\nstart lines\n";
  std::vector<std::vector<std::string>> lines;
  for (const RankStart& start : starts) {
    if (lines.empty() || lines.back()[1] != start.line) {
      lines.push_back({fmt::format("rank {}", start.place.rank.value), start.line});
    }
  }
  return out + table_of(lines);
}

Json json_of(const Preparation& preparation, const std::vector<RankStart>& starts) {
  const Launch& launch = preparation.placement.launch;
  Json ranks = Json::array();
  for (const RankStart& start : starts) {
    Json environment = Json::object();
    for (const EnvironmentEntry& entry : start.environment) {
      environment[entry.name] = entry.value;
    }
    ranks.push_back({{"rank", start.place.rank.value},
                     {"node", start.place.node},
                     {"local_rank", start.place.local_rank},
                     {"device", start.device},
                     {"environment", environment},
                     {"start_line", start.line}});
  }
  return {{"schema_version", schema_version},
          {"command", "explain"},
          {"launcher", launch.launcher},
          {"nodes", launch.nodes},
          {"world_size", launch.world_size()},
          {"ranks", ranks},
          {"problems", problems_json(preparation.problems)}};
}

bool is_about_start(const Problem& problem) {
  return problem.kind == Problem::Kind::refused || problem.kind == Problem::Kind::warning ||
         problem.kind == Problem::Kind::invalid;
}

std::string contradictions(const Preparation& preparation) {
  std::string out;
  for (const Problem& problem : preparation.problems) {
    if (is_about_start(problem)) {
      out += fmt::format("{}{}: {}\n  --> {}:{}:{}\n", problem.stops() ? "error" : "warning",
                         problem.code.empty() ? "" : " " + problem.code, problem.message,
                         problem.place.file, problem.place.line, problem.place.column);
      out += problem.remedy.empty() ? "" : fmt::format("  = {}\n", problem.remedy);
    }
  }
  return out;
}

}  // namespace

Answer explain_environment(const Request& request) {
  if (request.arguments.size() > 1) {
    return {"", "error: --env takes one scenario\n", ExitCode::usage};
  }
  const Collected collected = collect(source_of(request, request.arguments.front()));
  check_outputs(request, collected);
  if (!collected.diagnostics.empty()) {
    return bad_input(request, collected);
  }
  const auto asked = std::find_if(collected.jobs.begin(), collected.jobs.end(),
                                  [](const Job& job) { return job.asked; });
  const Preparation preparation = prepare(*asked->scenario, strategies());
  Answer answer;
  try {
    const std::vector<RankStart> starts = starts_of(preparation);
    answer.text = request.format == Format::json
                      ? lockstep::cli::text_of(json_of(preparation, starts))
                      : text_of_starts(preparation, starts);
  } catch (const EvaluationError&) {
    answer.code = ExitCode::bad_input;  // reported below, with its place
  }
  answer.diagnostics = contradictions(preparation);
  const bool contradicts = std::any_of(
      preparation.problems.begin(), preparation.problems.end(),
      [](const Problem& problem) { return is_about_start(problem) && problem.stops(); });
  if (contradicts && answer.code == ExitCode::ok) {
    answer.code = ExitCode::findings;
  }
  return answer;
}

}  // namespace lockstep::cli
