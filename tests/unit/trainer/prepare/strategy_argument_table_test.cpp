// One table says the arguments of a strategy: what it says is what the grammar takes, what the
// strategy reads, and what nothing given stands for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <set>

#include "io/scenario/classes/catalogue.hpp"
#include "model/strategy/registry.hpp"
#include "model/trainer/framework/strategy_versions.hpp"
#include "tests/unit/strategy/simulated.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace strategy_argument_table_test {

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// A class of Lightning, and the entry that makes its strategy.
struct ModelledClass {
  std::string name;
  const StrategyEntry* entry;
  const std::vector<StrategyArgument>* rows;
};

std::vector<ModelledClass> modelled_classes(const StrategyRegistry& registry) {
  std::vector<ModelledClass> found;
  std::set<std::string> names;
  for (const StrategyEntry& entry : registry.entries()) {
    if (names.insert(entry.class_name).second) {
      found.push_back({entry.class_name, &entry, &entry.arguments});
    }
    for (const ClassOfStrategy& other : entry.other_classes) {
      if (names.insert(other.name).second) {
        found.push_back({other.name, &entry, &other.arguments});
      }
    }
  }
  return found;
}

/// Without which the class is refused, or has one unit in which most arguments change nothing.
Pairs needed_by(const std::string& name, std::string_view argument = "") {
  if (name == "BaguaStrategy" && argument != "algorithm" && argument != "average") {
    if (argument == "sync_interval_ms" || argument == "warmup_steps") {
      return {{"algorithm", "async"}};
    }
    return {{"algorithm", "decentralized"}, {"hierarchical", "false"}};
  }
  if (name == "ModelParallelStrategy") {
    return {{"data_parallel_size", "2"}, {"tensor_parallel_size", "1"}};
  }
  const bool has_units =
      name.find("FSDP") != std::string::npos || name.find("FullySharded") != std::string::npos;
  return has_units ? Pairs{{"auto_wrap_policy", "[Linear]"}} : Pairs{};
}

/// What trains with a class, and on how many devices.
struct TrainedOn {
  std::string cluster;
  std::string accelerator;
  int devices = 2;
};

TrainedOn trained_on(const std::string& name) {
  const StrategyRegistry registry = standard_strategies();
  for (const ModelledClass& known : modelled_classes(registry)) {
    const StrategyTraits& traits = known.entry->traits;
    if (known.name == name && traits.drives_xla) {
      return {"tpu-v3-8", "tpu", traits.is_one_process() ? 1 : 8};
    }
  }
  return {"dgx-a100", "gpu", name == "SingleDeviceStrategy" ? 1 : 2};
}

std::string training_text(const std::string& name, const Pairs& given) {
  const TrainedOn machine = trained_on(name);
  const std::optional<Version> newest = newest_with_strategy(name);
  std::vector<std::string> pairs;
  for (const auto& [argument, value] : given) {
    pairs.push_back(argument + ": " + value);
  }
  return fmt::format(
      "version: 1\ncluster: {{preset: {}}}\n{}"
      "model: {{input: [4], layers: [{{Linear: [4, 7]}}, {{BatchNorm1d: 7}}, ReLU, {{Linear: [7, "
      "7]}}, {{Linear: [7, 3]}}], loss: MSELoss}}\n"
      "data: {{train: {{samples: 64, batch_size: 4}}}}\n"
      "optimizer: {{Adam: {{lr: 0.1}}}}\n"
      "trainer:\n  accelerator: {}\n  devices: {}\n  max_epochs: 1\n"
      "  accumulate_grad_batches: 2\n  strategy: {{{}: {{{}}}}}\n",
      machine.cluster,
      newest ? fmt::format("versions: {{lightning: \"{}.{}\", torch: \"2.11\"}}\n", newest->major,
                           newest->minor)
             : "",
      machine.accelerator, machine.devices, name, fmt::join(pairs, ", "));
}

/// Everything that arguments can change of a training.
struct Trial {
  std::vector<std::string> problems;
  std::string started;
  RunResult result;
};

Trial trial_of(const std::string& name, const Pairs& given) {
  const Preparation preparation =
      prepare(scenario_of(training_text(name, given)), standard_strategies());
  Trial trial;
  for (const Problem& problem : preparation.problems) {
    trial.problems.push_back(problem.message);
  }
  const Launch& launch = preparation.placement.launch;
  trial.started = fmt::format("{} {} {}", preparation.strategy, static_cast<int>(launch.start),
                              launch.processes_per_node);
  if (preparation.runnable()) {
    trial.result = simulate(preparation);
  }
  return trial;
}

std::vector<std::string> peaks_of(const RunResult& result) {
  std::vector<std::string> peaks;
  for (const std::map<DeviceId, DeviceMemory>& devices : result.memory) {
    for (const auto& [device, memory] : devices) {
      peaks.push_back(fmt::format("{} {}", static_cast<int>(device.value), memory.peak.count()));
    }
  }
  return peaks;
}

Pairs without(Pairs given, std::string_view name) {
  std::erase_if(given, [name](const auto& each) { return each.first == name; });
  return given;
}

/// Not of the type, as a scenario and as StrategyArguments have it; empty: everything is.
std::string wrong_text(std::string_view type) {
  if (type == "bool" || type == "list" || type == "map") {
    return "5";
  }
  return type == "int" || type == "float" || type == "text" ? "true" : "";
}

StrategyArguments::Value wrong_value(std::string_view type) {
  return type == "bool" ? StrategyArguments::Value(int64_t{5}) : StrategyArguments::Value(true);
}

std::vector<Diagnostic> diagnostics_of(const std::string& text) {
  return load_scenario_file("scenario.yaml", {},
                            [&](const std::string&,
                                size_t) -> std::variant<std::string, FileError> { return text; })
      .diagnostics;
}

StrategyArguments arguments_needed_by(const std::string& name) {
  StrategyArguments arguments;
  for (const auto& [argument, value] : needed_by(name, "algorithm")) {
    if (value == "[Linear]") {
      arguments.set(argument, std::vector<std::string>{"Linear"});
    } else {
      arguments.set(argument, int64_t{std::stoll(value)});
    }
  }
  return arguments;
}

TrainingPlan plan_of(const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.world_size = 2;
  return plan;
}

}  // namespace

TEST_CASE("every argument of a strategy has a type, a meaning and a default of its type") {
  const std::set<std::string_view> types = {"", "int", "float", "bool", "text", "list", "map"};
  const StrategyRegistry registry = standard_strategies();
  for (const ModelledClass& known : modelled_classes(registry)) {
    std::set<std::string_view> names;
    for (const StrategyArgument& row : *known.rows) {
      INFO(known.name << "." << row.name);
      CHECK(names.insert(row.name).second);
      CHECK(types.count(row.type) == 1);
      CHECK(row.meaning.size() > 5);
      CHECK(row.meaning.find('\n') == std::string_view::npos);
      CHECK(row.meaning.size() <= 90);
      CHECK_FALSE(row.default_text.empty());
      CHECK(default_of(row).has_value());
    }
  }
}

TEST_CASE("an argument with its default changes nothing of a training") {
  const StrategyRegistry registry = standard_strategies();
  int64_t compared = 0;
  for (const ModelledClass& known : modelled_classes(registry)) {
    {
      INFO(known.name);
      REQUIRE(trial_of(known.name, needed_by(known.name)).result.journal != nullptr);
    }
    for (const StrategyArgument& row : *known.rows) {
      const ArgumentOfVersions* versions = versions_of_argument(known.name, row.name);
      const bool is_gone = versions != nullptr && versions->until <= Version{2, 6, 0};
      if (row.use == ArgumentUse::by_name || is_gone) {
        continue;
      }
      INFO(known.name << "." << row.name << ": " << row.default_text);
      Pairs given = without(needed_by(known.name, row.name), row.name);
      const Trial silent = trial_of(known.name, given);
      given.emplace_back(row.name, row.default_text);
      const Trial told = trial_of(known.name, given);
      CHECK(silent.problems == told.problems);
      CHECK(silent.started == told.started);
      REQUIRE((silent.result.journal == nullptr) == (told.result.journal == nullptr));
      if (silent.result.journal != nullptr) {
        CHECK(differences(*silent.result.journal, *told.result.journal).empty());
        CHECK(silent.result.total_time == told.result.total_time);
        CHECK(peaks_of(silent.result) == peaks_of(told.result));
        ++compared;
      }
    }
  }
  CHECK(compared > 100);
}

TEST_CASE("an argument of a strategy with a value of another type is refused at its place") {
  const StrategyRegistry registry = standard_strategies();
  for (const ModelledClass& known : modelled_classes(registry)) {
    for (const StrategyArgument& row : *known.rows) {
      const std::string wrong = wrong_text(row.type);
      if (wrong.empty() || row.use == ArgumentUse::by_name) {
        continue;
      }
      INFO(known.name << "." << row.name << ": " << wrong);
      Pairs given = without(needed_by(known.name), row.name);
      given.emplace_back(row.name, wrong);
      const std::string text = training_text(known.name, given);
      const std::vector<Diagnostic> found = diagnostics_of(text);
      REQUIRE(found.size() == 1);
      CHECK(found.front().message.find(fmt::format("`{}.{}` takes", known.name, row.name)) == 0);
      const std::string pair = fmt::format("{}: {}", row.name, wrong);
      const size_t begin = text.rfind('\n', text.find(pair)) + 1;
      CHECK(found.front().place.line ==
            std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(begin), '\n') + 1);
      CHECK(static_cast<size_t>(found.front().place.column) ==
            text.find(pair) + row.name.size() + 2 - begin + 1);
    }
  }
}

TEST_CASE("a strategy that is made with a value of another type names the argument") {
  const Network network = small_network();
  const TrainingPlan plan = plan_of(network);
  const StrategyRegistry registry = standard_strategies();
  for (const StrategyEntry& entry : registry.entries()) {
    for (const StrategyArgument& row : entry.arguments) {
      if (!entry.reads(row.name) || wrong_text(row.type).empty() || row.type == "map") {
        continue;
      }
      INFO(entry.name << "." << row.name);
      StrategyArguments arguments = arguments_needed_by(entry.class_name);
      arguments.set(std::string(row.name), wrong_value(row.type));
      try {
        entry.make(plan, arguments);
        FAIL_CHECK("it was taken");
      } catch (const ArgumentProblem& problem) {
        CHECK(problem.argument() == row.name);
      }
    }
  }
}

TEST_CASE("a strategy reads the arguments that its table says it reads, and no other") {
  const Network network = small_network();
  const TrainingPlan plan = plan_of(network);
  const StrategyRegistry registry = standard_strategies();
  for (const StrategyEntry& entry : registry.entries()) {
    std::set<std::string> asked;
    StrategyArguments arguments = arguments_needed_by(entry.class_name);
    arguments.note_reads(&asked);
    entry.make(plan, arguments);
    if (entry.checkpointed_classes) {
      entry.checkpointed_classes(arguments);
    }
    if (entry.without_effect) {
      entry.without_effect(plan, arguments);
    }
    if (entry.of_size) {
      entry.of_size(arguments, 4);
    }
    std::set<std::string> read;  // without what a map holds
    for (const std::string& name : asked) {
      INFO(entry.name << " reads " << name);
      const std::string argument = name.substr(0, name.find('.'));
      const StrategyArgument* row = find_argument(entry.arguments, argument);
      REQUIRE(row != nullptr);
      CHECK((row->use == ArgumentUse::strategy || row->use == ArgumentUse::by_name ||
             row->use == ArgumentUse::no_effect));
      read.insert(argument);
    }
    for (const StrategyArgument& row : entry.arguments) {
      INFO(entry.name << " and its row " << row.name);
      if (row.use == ArgumentUse::strategy || row.use == ArgumentUse::by_name) {
        CHECK(read.count(std::string(row.name)) == 1);
      }
    }
  }
}

TEST_CASE("the grammar of a modelled strategy is its table, and stands nowhere else") {
  const StrategyRegistry registry = standard_strategies();
  for (const ModelledClass& known : modelled_classes(registry)) {
    INFO(known.name);
    const ClassRow* row = find_class(ObjectRole::strategy, known.name);
    REQUIRE(row != nullptr);
    CHECK(row->arguments.empty());
    std::vector<std::string_view> expected;
    for (const StrategyArgument& argument : *known.rows) {
      if (argument.use != ArgumentUse::by_name) {
        expected.push_back(argument.name);
      }
    }
    std::vector<std::string_view> taken;
    for (const ArgumentRow& argument : arguments_of(*row)) {
      taken.push_back(argument.name);
      CHECK(argument.of_strategy != nullptr);
    }
    CHECK(taken == expected);
  }
}

TEST_CASE("an argument that is not modelled is refused where it has not its default") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"skip_all_reduce_unused_params", "true"}};
  for (const auto& [name, value] : cases) {
    INFO(name);
    const Trial refused = trial_of("DDPStrategy", {{name, value}});
    REQUIRE(refused.problems.size() == 1);
    CHECK(refused.problems.front() ==
          "the argument `" + name + "` of DDPStrategy is not modelled yet");
    CHECK(trial_of("DDPStrategy", {{name, "null"}}).problems.empty());
  }
  // torch has not read it for years (torch/nn/parallel/distributed.py).
  CHECK(trial_of("DDPStrategy", {{"check_reduction", "true"}}).problems.empty());
}

TEST_CASE("the table has the defaults of Lightning's constructors") {
  const StrategyRegistry registry = standard_strategies();
  const auto default_text = [&](std::string_view of_class, std::string_view name) {
    const StrategyArgument* row = find_argument(*registry.arguments_of_class(of_class), name);
    REQUIRE(row != nullptr);
    return row->default_text;
  };
  // strategies/deepspeed.py, fsdp.py, ddp_spawn.py and fully_sharded_native.py.
  CHECK(default_text("DeepSpeedStrategy", "stage") == "2");
  CHECK(default_text("DeepSpeedStrategy", "reduce_bucket_size") == "200000000");
  CHECK(default_text("DeepSpeedStrategy", "sub_group_size") == "1000000000000");
  CHECK(default_text("DeepSpeedStrategy", "nvme_path") == "/local_nvme");
  CHECK(default_text("FSDPStrategy", "use_orig_params") == "true");
  CHECK(default_text("DDPSpawnStrategy", "find_unused_parameters") == "true");
  CHECK(default_text("DDPSpawnStrategy", "start_method") == "spawn");
  CHECK(default_text("DDPFullyShardedNativeStrategy", "backward_prefetch") == "null");
}

}  // namespace strategy_argument_table_test
