#include "tests/unit/oracle/lightning_recording.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "rehearsal/run/faults.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

namespace lockstep::test {

using nlohmann::json;

namespace {

// Of what a scenario computes: 64 roundings of fp32, and where layers compute in 16 bits, 16 of
// those.
double rounding_of(const std::string& scenario) {
  if (scenario.find("precision: bf16") != std::string::npos) {
    return 16 * 0x1p-8;
  }
  return scenario.find("precision: 16") != std::string::npos ? 16 * 0x1p-11 : 64 * 0x1p-24;
}

/// Notes the hooks that the trainer of one rank begins.
class HookPort final : public PortDecorator {
 public:
  using PortDecorator::PortDecorator;
  ProcessSignal reached(const Position& position) override {
    if (!position.hook.empty()) {
      hooks.emplace_back(position.hook);
    }
    return PortDecorator::reached(position);
  }
  std::vector<std::string> hooks;
};

struct RankView {
  explicit RankView(Port& inner) : port(inner), rank(port) {}
  HookPort port;
  Rank rank;
};

// Hooks of Lightning 1.x, and what is no hook of Lightning.
bool is_of_2_x(const std::string& hook) {
  static constexpr std::string_view others[] = {
      "configure_sharded_model", "main",           "__init__",         "training_step_end",
      "validation_step_end",     "test_step_end",  "predict_step_end", "training_epoch_end",
      "validation_epoch_end",    "test_epoch_end", "predict_epoch_end"};
  return std::ranges::find(others, hook) == std::end(others);
}

// The barrier after prepare_data sends messages (monitored_barrier), which theirs do not list.
bool is_listed(const Row& row, const Sites& sites) {
  const Site* site = sites.find(row.site);
  return site == nullptr || site->description != "Lightning, barrier after prepare_data";
}

json operations_of(const Journal& journal, const Sites& sites, int32_t rank, size_t world_size) {
  json operations = json::array();
  journal.lane(rank, 0).for_each([&](const Row& row) {
    if (!is_listed(row, sites)) {
      return;
    }
    if (row.row == RowKind::op && row.kind == OpKind::barrier) {
      operations.push_back(json::array({"barrier"}));
    } else if (row.row == RowKind::op && is_collective(row.kind)) {
      // Theirs counts what a rank hands over: the root of a scatter a part for everyone.
      const bool is_root = row.kind == OpKind::scatter && row.peer == rank;
      const auto parts = static_cast<int64_t>(is_root ? world_size : 1);
      operations.push_back(
          {name_of(row.kind), name_of(row.dtype), parts * (row.bytes / size_of(row.dtype))});
    }
  });
  return operations;
}

std::string name_of_end(RankEnd::Kind kind) {
  return kind == RankEnd::Kind::finished ? "finished"
         : kind == RankEnd::Kind::stuck  ? "stuck"
                                         : "raised";
}

json samples_of(const RankLog& log) {
  json passes = json::array();
  for (const SampleUse& use : log.samples) {
    passes.push_back({{"stage", use.stage},
                      {"epoch", use.epoch},
                      {"dataloader", use.dataloader},
                      {"samples", use.samples.list()}});
  }
  return passes;
}

json checkpoints_of(const RankLog& log) {
  json all = json::array();
  for (const CheckpointLog& checkpoint : log.checkpoints) {
    all.push_back(
        {{"best_model_path", checkpoint.best},
         {"best_model_score", checkpoint.best_score ? json(*checkpoint.best_score) : json(nullptr)},
         {"kept",
          json(std::map<std::string, double>(checkpoint.kept.begin(), checkpoint.kept.end()))},
         {"last_model_path", checkpoint.last}});
  }
  return all;
}

json logger_of(const RankLog& log) {
  json rows = json::array();
  for (const LoggerRow& row : log.logger.rows) {
    rows.push_back({row.step, row.values});
  }
  return rows;
}

json record_of(const RankLog& log, const RankView& view, const RankEnd& end) {
  json hooks = json::array();
  std::ranges::copy_if(view.port.hooks, std::back_inserter(hooks), is_of_2_x);
  json parameters = json::array();
  for (const Values& values : log.final_parameters) {
    json numbers = json::array();
    for (int64_t i = 0; i < values.size(); ++i) {
      numbers.push_back(values.number(i));
    }
    parameters.push_back(std::move(numbers));
  }
  return {{"ended", name_of_end(end.kind)},
          {"callback_metrics", log.metrics},
          {"progress_bar", log.progress_bar},
          {"logger", logger_of(log)},
          {"samples", samples_of(log)},
          {"checkpoints", checkpoints_of(log)},
          {"stopped_epoch", log.stopped_epoch.value_or(0)},
          {"global_step", log.steps},
          {"epochs", log.epochs},
          {"hooks", std::move(hooks)},
          {"parameters", std::move(parameters)}};
}

// Theirs are grouped by batches.
json flat_samples(const json& passes) {
  json flat = json::array();
  for (const json& pass : passes) {
    json samples = json::array();
    for (const json& batch : pass["batches"]) {
      samples.insert(samples.end(), batch.begin(), batch.end());
    }
    flat.push_back({{"stage", pass["stage"]},
                    {"epoch", pass["epoch"]},
                    {"dataloader", pass["dataloader"]},
                    {"samples", std::move(samples)}});
  }
  return flat;
}

// Theirs are listed among all callbacks.
void tell_callbacks_apart(json& record) {
  record["checkpoints"] = json::array();
  record["stopped_epoch"] = 0;
  for (const json& callback : record["callbacks"]) {
    if (callback.contains("ModelCheckpoint")) {
      record["checkpoints"].push_back(callback["ModelCheckpoint"]);
    } else if (callback.contains("EarlyStopping")) {
      record["stopped_epoch"] = callback["EarlyStopping"]["stopped_epoch"];
    }
  }
}

// A pickled object has as many bytes as its text: a path, say. Passes without a batch are none, and
// those of training and validation overlap.
json comparable(const json& record) {
  json result = record;
  if (record.contains("callbacks")) {
    tell_callbacks_apart(result);
  }
  std::stable_sort(result["samples"].begin(), result["samples"].end(),
                   [](const json& a, const json& b) { return a["stage"] < b["stage"]; });
  for (json& operation : result["operations"]) {
    if (operation[0] == "broadcast" && operation[1] == "uint8") {
      operation[2] = "object";
    }
  }
  if (!result["samples"].empty() && result["samples"][0].contains("batches")) {
    result["samples"] = flat_samples(result["samples"]);
  }
  json used = json::array();
  std::ranges::copy_if(result["samples"], std::back_inserter(used),
                       [](const json& pass) { return !pass["samples"].empty(); });
  result["samples"] = std::move(used);
  return result;
}

bool agree(const json& ours, const json& theirs, double rounding) {
  if (ours.is_number() && theirs.is_number()) {
    const double expected = theirs.get<double>();
    return std::abs(ours.get<double>() - expected) <=
           rounding * std::max(std::abs(expected), 0.125);
  }
  if (ours.type() != theirs.type() || ours.size() != theirs.size() || !theirs.is_structured()) {
    return ours == theirs;
  }
  if (theirs.is_object()) {
    return std::ranges::all_of(theirs.items(), [&](const auto& item) {
      return ours.contains(item.key()) && agree(ours[item.key()], item.value(), rounding);
    });
  }
  return std::equal(
      ours.begin(), ours.end(), theirs.begin(),
      [rounding](const json& mine, const json& other) { return agree(mine, other, rounding); });
}

// A rank that waits forever says no last word. One of the two sides may have gone one call
// further: Lightning takes the end of the time limit in its broadcast of the SIGTERM flag for a
// "no", and goes on; our host runs ahead of its device, as with a GPU.
bool agree_until_stuck(const json& ours, const json& theirs) {
  const size_t both = std::min(ours.size(), theirs.size());
  return std::max(ours.size(), theirs.size()) <= both + 1 &&
         std::equal(ours.begin(), ours.begin() + static_cast<std::ptrdiff_t>(both), theirs.begin());
}

bool agree_in(const std::string& part, const json& ours, const json& theirs) {
  const bool stuck = theirs["ended"] == "stuck";
  if (part == "operations" && stuck) {
    return agree_until_stuck(ours[part], theirs[part]);
  }
  const bool of_the_end = part == "samples" || part == "hooks" || part == "parameters" ||
                          part == "checkpoints" || part == "stopped_epoch";
  if ((of_the_end && theirs["ended"] != "finished") || (part == "global_step" && stuck)) {
    return true;
  }
  return agree(ours[part], theirs[part], theirs["rounding"]);
}

}  // namespace

std::vector<LightningRecording> lightning_recordings() {
  std::vector<LightningRecording> recordings;
  for (const auto& entry :
       std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/data/oracle/lightning")) {
    std::ifstream file(entry.path());
    const json recorded = json::parse(file);
    LightningRecording recording{recorded["name"], "", recorded["ranks"]};
    for (const json& line : recorded["scenario"]) {
      recording.scenario += line.get<std::string>() + "\n";
    }
    for (json& rank : recording.ranks) {
      rank["rounding"] = rounding_of(recording.scenario);
    }
    recordings.push_back(std::move(recording));
  }
  std::ranges::sort(recordings, {}, &LightningRecording::name);
  return recordings;
}

OurTraining our_training(const LightningRecording& recording, const WorldOfRanks& world) {
  OurTraining ours;
  WorldAbilities abilities;
  abilities.faults = cli::every_fault();
  Scenario scenario = scenario_of(recording.scenario);
  if (!scenario.trainer->log_every_n_steps) {  // theirs gives the loggers every step
    scenario.trainer->log_every_n_steps = Placed<int64_t>{1, {}};
  }
  Preparation preparation = prepare(scenario, standard_strategies(), abilities);
  const auto add_refused = [&ours](const std::vector<Problem>& problems) {
    for (const Problem& problem : problems) {
      if (problem.stops()) {
        ours.refused.push_back(problem.message);
      }
    }
  };
  add_refused(preparation.problems);
  if (!preparation.runnable()) {
    return ours;
  }
  const cli::FaultPlan faults = plan_faults(scenario, preparation, cli::World::simulated);
  add_refused(faults.problems);
  preparation.options.faults = faults.planned;
  std::vector<std::unique_ptr<RankView>> views(recording.ranks.size());
  const RunResult result = world(preparation.options, [&](Rank& rank) {
    std::unique_ptr<RankView>& view = views[static_cast<size_t>(rank.id())];
    view = std::make_unique<RankView>(rank.port());
    return preparation.program(view->rank);
  });
  for (size_t rank = 0; rank < views.size(); ++rank) {
    json record = record_of(preparation.log->ranks[rank], *views[rank], result.ends[rank]);
    record["operations"] =
        operations_of(*result.journal, preparation.sites, static_cast<int32_t>(rank), views.size());
    record["message"] = result.ends[rank].message;
    ours.ranks.push_back(std::move(record));
  }
  return ours;
}

std::vector<std::string> differing_parts(const json& ours, const json& theirs) {
  std::set<std::string> differing;
  for (size_t rank = 0; rank < theirs.size(); ++rank) {
    const json mine = comparable(ours[rank]);
    const json other = comparable(theirs[rank]);
    for (const char* part :
         {"ended", "operations", "callback_metrics", "logger", "progress_bar", "samples",
          "global_step", "epochs", "hooks", "parameters", "checkpoints", "stopped_epoch"}) {
      if (other.contains(part) && !agree_in(part, mine, other)) {
        differing.insert(part);
      }
    }
  }
  return {differing.begin(), differing.end()};
}

}  // namespace lockstep::test
