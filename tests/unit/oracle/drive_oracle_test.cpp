// What stage 3 of DeepSpeed reads from the drive and writes to it, against recordings of it
// (tests/oracle/drive_operations.py): the same operations, in the same order, in the same part of a
// step, and the same failures.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace drive_oracle_test {
using nlohmann::json;

namespace {

std::vector<json> recordings() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/data/oracle/drive")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<json> all;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    all.push_back(json::parse(file));
  }
  return all;
}

Network layers_of(const json& setting) {
  NetworkDescription description;
  description.name = "recorded";
  const int64_t width = setting["width"];
  description.input = {width};
  for (int64_t layer = 0; layer < setting["layers"]; ++layer) {
    description.layers.push_back(linear(width, width));
    description.layers.back().arguments.push_back({"bias", false});
  }
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "a setting's network is sound");
  return std::move(built.network);
}

void add(StrategyArguments& arguments, const std::string& name, const json& value) {
  if (value.is_object()) {
    for (const auto& [key, below] : value.items()) {
      add(arguments, name + "." + key, below);
    }
  } else if (value.is_boolean()) {
    arguments.set(name, value.get<bool>());
  } else if (value.is_string()) {
    arguments.set(name, value.get<std::string>());
  } else {
    arguments.set(name, value.get<int64_t>());
  }
}

StrategyArguments arguments_of(const json& setting) {
  StrategyArguments arguments;
  arguments.set("config.zero_optimization.stage", int64_t{3});
  // So in drive_operations.py.
  arguments.set("config.zero_allow_untested_optimizer", true);
  arguments.set("config.zero_force_ds_cpu_optimizer", false);
  for (const auto& [name, value] : setting["zero"].items()) {
    add(arguments, "config.zero_optimization." + name, value);
    if (value.is_object()) {
      arguments.set("config.zero_optimization." + name + ".nvme_path", std::string("/drive"));
    }
  }
  for (const auto& [name, value] : setting["config"].items()) {
    add(arguments, "config." + name, value);
  }
  return arguments;
}

TrainingPlan plan_of(const json& setting, const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.deepspeed = Version{0, 16, 4};  // tests/oracle/sharding_sources.txt
  const std::string optimizer = setting["optimizer"];
  plan.optimizers.front().kind = optimizer == "AdamW" ? OptimizerKind::adamw : OptimizerKind::sgd;
  plan.optimizers.front().momentum = optimizer == "momentum" ? 0.5 : 0;
  if (setting["config"].contains("bf16")) {
    plan.activation_dtype = DType::bf16;
  }
  return plan;
}

// Every part of a step begins with work of the host.
Program train_marked(Rank& rank, Strategy* strategy, const json* setting) {
  const int64_t accumulate = (*setting)["accumulate"];
  co_await strategy->setup(rank, Stage::fit);
  for (int64_t step = 0; step < (*setting)["steps"]; ++step) {
    StepOptions options;
    options.synchronise = (step + 1) % accumulate == 0;
    rank.host(Time(1));
    Batch batch;
    batch.samples.push_back(rank.id());
    co_await strategy->forward(rank, batch, options);
    rank.host(Time(1));
    co_await strategy->backward(rank, options);
    rank.host(Time(1));
    if (options.synchronise) {
      co_await strategy->optimizer_step(rank, {});
    }
  }
}

std::vector<std::string> operations_of(const RunResult& result) {
  std::vector<std::string> operations;
  int64_t part = 0;
  result.journal->lane(0, 0).for_each([&](const Row& row) {
    if (row.row != RowKind::op) {
      return;
    }
    if (row.kind == OpKind::host) {
      const char* const parts[] = {"forward", "backward", "step"};
      operations.emplace_back(parts[part++ % 3]);
    } else if (part > 0 && row.kind == OpKind::copy && row.stream.device() == drive_device) {
      const char* what = row.stream == drive_reads ? "read " : "write ";
      operations.push_back(what + std::to_string(row.bytes));
    }
  });
  return operations;
}

// Our messages go on behind DeepSpeed's, and know no numbers of buffers.
std::string beginning_of(std::string raised) {
  while (!raised.empty() && (std::isdigit(static_cast<unsigned char>(raised.back())) != 0)) {
    raised.pop_back();
  }
  return raised;
}

}  // namespace

TEST_CASE("the drive is read and written as the real DeepSpeed does") {
  for (const json& recorded : recordings()) {
    const json& setting = recorded["setting"];
    INFO(setting["name"]);
    const Network network = layers_of(setting);
    const TrainingPlan plan = plan_of(setting, network);
    const StrategyArguments arguments = arguments_of(setting);
    RunOptions options;
    options.world_size = setting["world_size"];
    options.network = &network;
    sim::ExplicitComputeCost compute;
    sim::FlatNetworkCost links(options.world_size, BytesPerSecond(50'000'000'000), Time(500'000));
    sim::SimulationOptions simulation;
    simulation.compute = &compute;
    simulation.communication = &links;
    std::vector<std::unique_ptr<Strategy>> strategies;
    for (int32_t rank = 0; rank < options.world_size; ++rank) {
      strategies.push_back(deepspeed().make(plan, arguments));
    }
    const RunResult result = sim::simulate(options, simulation, [&](Rank& rank) {
      return train_marked(rank, strategies[static_cast<size_t>(rank.id())].get(), &setting);
    });
    const std::string raised = recorded["raised"];
    const RankEnd& end = result.ends.front();
    INFO(end.message);
    CHECK((end.kind == RankEnd::Kind::finished) == raised.empty());
    CHECK(end.message.find(beginning_of(raised)) != std::string::npos);
    // Adam's count of steps, a file of one request, is not modelled.
    auto expected = recorded["operations"].get<std::vector<std::string>>();
    std::erase_if(expected, [](const std::string& each) { return each.ends_with(" 1024"); });
    CHECK(operations_of(result) == expected);
  }
}

}  // namespace drive_oracle_test
