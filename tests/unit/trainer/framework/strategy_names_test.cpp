// Every name of a strategy that Lightning 1.4 to 2.6 takes, in each of these versions.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "model/strategy/registry.hpp"
#include "model/trainer/framework/strategy_names.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace strategy_names_test {

namespace {

struct Release {
  std::vector<std::string> versions;
  std::string names;
};

constexpr const char* of_all =
    "ddp ddp_find_unused_parameters_false ddp_spawn ddp_spawn_find_unused_parameters_false "
    "deepspeed deepspeed_stage_2 deepspeed_stage_2_offload deepspeed_stage_3 "
    "deepspeed_stage_3_offload deepspeed_stage_3_offload_nvme fsdp ";
constexpr const char* of_1 =
    "dp horovod ddp_sharded ddp_sharded_spawn ddp_fully_sharded tpu_spawn tpu_spawn_debug "
    "ddp_sharded_find_unused_parameters_false ddp_sharded_spawn_find_unused_parameters_false ";
constexpr const char* from_1_6 = "single_device single_tpu deepspeed_stage_1 ";
constexpr const char* other_hardware = "hpu_parallel hpu_single ipu_strategy ";
constexpr const char* forked =
    "ddp_fork ddp_notebook ddp_fork_find_unused_parameters_false "
    "ddp_notebook_find_unused_parameters_false ";
constexpr const char* native = "fsdp_native fsdp_native_full_shard_offload ";
constexpr const char* of_2 =
    "ddp_find_unused_parameters_true ddp_spawn_find_unused_parameters_true "
    "ddp_fork_find_unused_parameters_true ddp_notebook_find_unused_parameters_true "
    "fsdp_cpu_offload xla xla_debug ";

// Read out of the released packages by their register_strategies, and of DistributedType in 1.4 and
// 1.5: the numbers are those of the names in each.
std::vector<Release> releases() {
  const std::string all = of_all;
  return {{{"1.4.9"}, all + of_1 + "ddp2"},
          {{"1.5.10"}, all + of_1 + "ddp2 deepspeed_stage_1"},
          {{"1.6.5"}, all + of_1 + from_1_6 + other_hardware + "ddp2 bagua"},
          {{"1.7.7"}, all + of_1 + from_1_6 + other_hardware + forked + native + "bagua"},
          {{"1.8.6", "1.9.5"},
           all + of_1 + from_1_6 + other_hardware + forked + native + "bagua colossalai"},
          {{"2.0.9"}, all + from_1_6 + other_hardware + forked + of_2},
          {{"2.1.4", "2.2.5", "2.3.3", "2.4.0", "2.5.6", "2.6.0"},
           all + from_1_6 + forked + of_2 + "single_xla"}};
}

std::set<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> found;
  for (std::string word; stream >> word;) {
    found.insert(word);
  }
  return found;
}

/// Taken by versions, and not run here on GPUs, or refused when the model is wrapped; each with a
/// word of the reason.
std::string reason_of(const std::string& name) {
  if (name.starts_with("hpu")) {
    return "Gaudi";
  }
  if (name == "ipu_strategy") {
    return "Graphcore";
  }
  if (name.starts_with("ddp_sharded") && name.ends_with("_find_unused_parameters_false")) {
    return "got an unexpected keyword argument 'find_unused_parameters'";  // FairScale's wrapper
  }
  if (name == "tpu_spawn" || name == "tpu_spawn_debug" || name.ends_with("_tpu") ||
      name.find("xla") != std::string::npos) {
    return "TPU";
  }
  return name == "colossalai" ? "ColossalAI" : "";
}

std::string how_to_name(const std::string& name, const std::string& version) {
  if (!version.starts_with("1.4")) {
    return "strategy: " + name;
  }
  const StrategyName* row = find_strategy_name(name);
  return (row != nullptr && row->is_type ? "accelerator: " : "plugins: ") + name;
}

bool is_on_host(const std::string& name) {
  return name.starts_with("deepspeed") && name.find("offload") != std::string::npos;
}

std::string scenario_with(const std::string& name, const std::string& version) {
  const bool by_gpus = version < std::string("1.7");
  const bool accelerator = !version.starts_with("1.4");
  // Up to 1.5 the Trainer of Horovod's processes has one GPU each, and horovodrun says how many.
  const bool by_horovodrun =
      version < std::string("1.6") && (name.starts_with("horovod") || name.starts_with("Horovod"));
  return fmt::format(
      "version: 1\nversions: {{lightning: \"{}\"}}\ncluster: {{preset: dgx-a100, nodes: 1}}\n"
      "model: {{input: [4], layers: [{{Linear: [4, 2]}}], loss: MSELoss}}\n"
      "optimizer: {{{}: {{lr: 0.01}}}}\n"
      "data: {{train: {{samples: 8, batch_size: 2}}}}\n"
      "trainer: {{{}{}: {}, {}, max_epochs: 1, num_sanity_val_steps: 0}}\n{}",
      version, is_on_host(name) ? "DeepSpeedCPUAdam" : "SGD",
      accelerator ? "accelerator: gpu, " : "", by_gpus ? "gpus" : "devices",
      name == "single_device" || by_horovodrun ? 1 : 2, how_to_name(name, version),
      by_horovodrun ? "launcher: {horovodrun: {np: 2}}\n" : "");
}

/// The problem that stops it; nothing: it can run.
const Problem* stop_of(const Preparation& preparation) {
  const auto found =
      std::ranges::find_if(preparation.problems, [](const Problem& each) { return each.stops(); });
  return found == preparation.problems.end() ? nullptr : &*found;
}

void check_stop(const Problem& stop) {
  CHECK_FALSE(stop.remedy.empty());
  CHECK(stop.place.line == 7);
}

void check_taken(const std::string& name, const std::string& version) {
  const Preparation preparation =
      prepare(scenario_of(scenario_with(name, version)), standard_strategies());
  const Problem* stop = stop_of(preparation);
  const std::string reason = reason_of(name);
  if (!reason.empty()) {
    REQUIRE(stop != nullptr);
    check_stop(*stop);
    CHECK(stop->message.find(name == "tpu_spawn" && version >= std::string("1.5")
                                 ? "not a valid strategy"
                                 : reason) != std::string::npos);
    return;
  }
  INFO((stop == nullptr ? "" : stop->message));
  REQUIRE(stop == nullptr);
  const RunResult result = simulate(preparation);
  CHECK(std::ranges::all_of(
      result.ends, [](const RankEnd& end) { return end.kind == RankEnd::Kind::finished; }));
  // Eight samples in batches of two, on one process or two.
  const bool is_one_process = name == "single_device" || name == "dp" || name == "ddp2";
  CHECK(preparation.log->ranks[0].samples_of_steps ==
        std::vector<int64_t>(is_one_process ? 4 : 2, 2));
}

void check_not_taken(const std::string& name, const std::string& version) {
  const Preparation preparation =
      prepare(scenario_of(scenario_with(name, version)), standard_strategies());
  const Problem* stop = stop_of(preparation);
  REQUIRE(stop != nullptr);
  INFO(stop->message);
  CHECK(stop->kind == Problem::Kind::refused);
  CHECK(stop->message.find("Lightning") != std::string::npos);
  check_stop(*stop);
}

}  // namespace

TEST_CASE("every name of every version runs, or is refused with that version's reason") {
  std::set<std::string> all;
  for (const Release& release : releases()) {
    all.merge(words(release.names));
  }
  for (const StrategyName& row : strategy_names()) {
    all.insert(std::string(row.name));
  }
  for (const Release& release : releases()) {
    const std::set<std::string> taken = words(release.names);
    for (const std::string& version : release.versions) {
      for (const std::string& name : all) {
        INFO(version << " " << name);
        const bool is_class = name.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos;
        if (taken.contains(name)) {
          check_taken(name, version);
        } else if (!is_class) {
          check_not_taken(name, version);
        }
      }
    }
  }
}

TEST_CASE("the numbers of names are those of the released packages") {
  std::vector<size_t> sizes;
  for (const Release& release : releases()) {
    sizes.push_back(words(release.names).size());
  }
  CHECK(sizes == std::vector<size_t>{21, 22, 28, 33, 34, 28, 26});
}

TEST_CASE("a strategy has a name for the reader and the name of its entry") {
  const StrategyRegistry registry = standard_strategies();
  for (const char* name : {"ddp", "ddp_spawn", "deepspeed", "deepspeed_stage_3_offload"}) {
    INFO(name);
    const Preparation preparation = prepare(
        scenario_of(std::string("version: 1\nmodel: {preset: mlp}\ntrainer: {accelerator: gpu, "
                                "devices: 2, max_epochs: 1, strategy: ") +
                    name + "}\n"),
        registry);
    CHECK(preparation.runnable());
    CHECK(registry.find(preparation.registered_strategy) != nullptr);
  }
}

}  // namespace strategy_names_test
