#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/strategy/registry.hpp"
#include "model/trainer/framework/strategy_choice.hpp"

using namespace lockstep;

namespace strategy_choice_test {

namespace {

StrategySituation on(Version lightning, int64_t devices = 4, int64_t nodes = 1) {
  StrategySituation situation;
  situation.lightning = lightning;
  situation.devices = devices;
  situation.nodes = nodes;
  return situation;
}

constexpr Version v1_5{1, 5, 10};
constexpr Version v1_6{1, 6, 5};
constexpr Version v1_7{1, 7, 7};
constexpr Version v1_9{1, 9, 5};
constexpr Version v2_0{2, 0, 9};
constexpr Version v2_6{2, 6, 0};

StrategyChoice choose_strategy(std::string_view asked, const StrategySituation& situation) {
  static const StrategyRegistry registry = standard_strategies();
  return lockstep::choose_strategy(asked, situation, registry);
}

bool is_refused(const std::string& name, Version lightning) {
  return !choose_strategy(name, on(lightning)).refusal.empty();
}

/// What the name says of unused parameters.
std::optional<bool> unused_parameters(const StrategyChoice& choice) {
  for (const auto& [name, value] : choice.arguments) {
    if (name == "find_unused_parameters") {
      return std::get<bool>(value);
    }
  }
  return std::nullopt;
}

}  // namespace

// accelerator_connector.py, _choose_strategy.
TEST_CASE("Lightning chooses a strategy by version, nodes, devices and notebook") {
  CHECK(choose_strategy("auto", on(v1_6, 4, 2)).name == "ddp");
  CHECK(choose_strategy("auto", on(v2_6, 4, 2)).name == "ddp");
  CHECK(choose_strategy("auto", on(v1_6, 1)).name == "single_device");
  CHECK(choose_strategy("", on(v2_6, 1)).name == "single_device");
  CHECK(choose_strategy("auto", on(v1_6)).name == "ddp_spawn");
  CHECK(choose_strategy("auto", on(v1_9)).start == StartMethod::spawn);
  CHECK(choose_strategy("auto", on(v2_6)).name == "ddp");
  StrategySituation notebook = on(v2_6);
  notebook.interactive = true;
  CHECK(choose_strategy("auto", notebook).name == "ddp_fork");
  notebook.lightning = v1_7;
  CHECK(choose_strategy("auto", notebook).name == "ddp_fork");
  StrategySituation horovod = on(v1_6);
  horovod.horovodrun = true;
  CHECK(choose_strategy("auto", horovod).name == "horovod");
}

TEST_CASE("a strategy of one node says what to use on several") {
  const StrategyChoice naive = choose_strategy("naive_model_parallel", on(v2_6, 4, 2));
  CHECK(naive.refusal ==
        "naive_model_parallel drives the devices of one node only, and num_nodes is 2");
  CHECK(naive.remedy.starts_with("use PipelineStrategy"));  // ddp has all layers on each device
  CHECK(choose_strategy("dp", on(v1_6, 4, 2)).remedy == "use ddp");
  CHECK(choose_strategy("naive_model_parallel", on(v2_6, 4)).refusal.empty());
}

TEST_CASE(
    "every name of the registry is a strategy, a way to start, and unused parameters or not") {
  struct Row {
    std::string asked;
    Version lightning;
    std::string name;
    StartMethod start;
    std::optional<bool> unused;
  };
  const std::vector<Row> rows = {
      {"ddp", v2_6, "ddp", StartMethod::script, {}},
      {"DDPStrategy", v2_6, "ddp", StartMethod::script, {}},
      {"ddp_find_unused_parameters_true", v2_6, "ddp", StartMethod::script, true},
      {"ddp_find_unused_parameters_false", v1_6, "ddp", StartMethod::script, false},
      {"ddp_spawn", v2_6, "ddp_spawn", StartMethod::spawn, {}},
      {"DDPSpawnStrategy", v1_6, "ddp_spawn", StartMethod::spawn, {}},
      {"ddp_spawn_find_unused_parameters_true", v2_6, "ddp_spawn", StartMethod::spawn, true},
      {"ddp_spawn_find_unused_parameters_false", v1_6, "ddp_spawn", StartMethod::spawn, false},
      {"ddp_fork", v2_6, "ddp_fork", StartMethod::fork, {}},
      {"ddp_fork_find_unused_parameters_true", v2_6, "ddp_fork", StartMethod::fork, true},
      {"ddp_fork_find_unused_parameters_false", v2_6, "ddp_fork", StartMethod::fork, false},
      {"ddp_notebook", v2_6, "ddp_notebook", StartMethod::fork, {}},
      {"ddp_notebook_find_unused_parameters_true", v2_6, "ddp_notebook", StartMethod::fork, true},
      {"ddp_notebook_find_unused_parameters_false", v2_6, "ddp_notebook", StartMethod::fork, false},
      {"dp", v1_6, "dp", StartMethod::script, {}},
      {"ddp2", v1_6, "ddp2", StartMethod::script, {}},
      {"fsdp", v2_6, "fsdp", StartMethod::script, {}},
      {"fsdp", v1_6, "ddp_fully_sharded", StartMethod::script, {}},
      {"fsdp_native", v1_9, "fsdp_native", StartMethod::script, {}},
      {"deepspeed_stage_2", v2_6, "deepspeed", StartMethod::script, {}},
      {"PipelineStrategy", v2_6, "PipelineStrategy", StartMethod::script, {}}};
  for (const Row& row : rows) {
    INFO(row.asked);
    const StrategyChoice choice = choose_strategy(row.asked, on(row.lightning));
    CHECK(choice.refusal.empty());
    CHECK(choice.name == row.name);
    CHECK(choice.start == row.start);
    CHECK(unused_parameters(choice) == row.unused);
  }
}

TEST_CASE("a name may stand for several arguments") {
  const StrategyChoice choice = choose_strategy("deepspeed_stage_3_offload", on(v2_6));
  using Arguments = std::vector<std::pair<std::string, StrategyArguments::Value>>;
  CHECK(choice.arguments == Arguments{{"stage", int64_t{3}},
                                      {"offload_optimizer", true},
                                      {"offload_parameters", true}});
}

// strategies/fully_sharded_native.py of 1.9 passes backward_prefetch=None to FSDP.
TEST_CASE("fsdp of 1.7 to 1.9 prefetches nothing unless it is asked to") {
  using Arguments = std::vector<std::pair<std::string, StrategyArguments::Value>>;
  for (const char* name : {"fsdp_native", "DDPFullyShardedNativeStrategy"}) {
    CHECK(choose_strategy(name, on(v1_9)).arguments ==
          Arguments{{"default_process_group", true},  // process_group=self.process_group
                    {"backward_prefetch", std::monostate()},
                    {"use_orig_params", false},
                    {"limit_all_gathers", false},
                    {"gathers_optimizer_state", false}});
  }
  const Arguments of_2_0 = choose_strategy("fsdp", on(v2_0)).arguments;
  CHECK(std::ranges::none_of(
      of_2_0, [](const auto& argument) { return argument.first == "backward_prefetch"; }));
  CHECK(choose_strategy("fsdp", on(v2_6)).arguments.empty());
}

TEST_CASE("names are refused where the version has them no more") {
  for (const char* name : {"ddp2", "DDP2Strategy"}) {
    CHECK_FALSE(is_refused(name, v1_6));
    CHECK(is_refused(name, v1_7));
  }
  for (const char* name :
       {"dp", "DataParallelStrategy", "DDPSpawnStrategy", "ddp_sharded", "ddp_sharded_spawn",
        "DDPShardedStrategy", "ddp_fully_sharded", "DDPFullyShardedStrategy", "fsdp_native",
        "horovod", "HorovodStrategy", "bagua", "BaguaStrategy"}) {
    INFO(name);
    CHECK_FALSE(is_refused(name, v1_9));
    CHECK(is_refused(name, v2_0));
  }
}

TEST_CASE("names are refused where the version has them not yet") {
  for (const char* name : {"DDPStrategy", "DDPSpawnStrategy", "DataParallelStrategy", "bagua"}) {
    INFO(name);
    CHECK(is_refused(name, v1_5));
    CHECK_FALSE(is_refused(name, v1_6));
  }
  for (const char* name : {"ddp_fork", "ddp_notebook", "fsdp_native"}) {
    CHECK(is_refused(name, v1_6));
    CHECK_FALSE(is_refused(name, v1_7));
  }
  for (const char* name : {"ddp_find_unused_parameters_true", "FSDPStrategy", "fsdp_cpu_offload"}) {
    CHECK(is_refused(name, v1_9));
    CHECK_FALSE(is_refused(name, v2_0));
  }
  CHECK(is_refused("ModelParallelStrategy", v2_0));
  CHECK_FALSE(is_refused("ModelParallelStrategy", v2_6));
}

TEST_CASE("1.6 takes ddp in silence where dp or ddp_spawn does not fit") {
  StrategySituation cpu = on(v1_6);
  cpu.cpu = true;
  CHECK(choose_strategy("dp", cpu).name == "ddp");
  CHECK(choose_strategy("ddp2", cpu).name == "ddp");
  CHECK_FALSE(choose_strategy("dp", cpu).warning.empty());
  StrategySituation torchrun = on(v1_6);
  torchrun.started_externally = true;
  CHECK(choose_strategy("ddp_spawn", torchrun).name == "ddp");
  CHECK(choose_strategy("auto", torchrun).start == StartMethod::script);
  torchrun.lightning = v2_6;
  CHECK(choose_strategy("ddp_spawn", torchrun).name == "ddp_spawn");
}

TEST_CASE("a notebook takes strategies that fork or have one process") {
  StrategySituation notebook = on(v2_6);
  notebook.interactive = true;
  CHECK_FALSE(choose_strategy("ddp", notebook).refusal.empty());
  CHECK_FALSE(choose_strategy("ddp_spawn", notebook).refusal.empty());
  CHECK(choose_strategy("ddp_notebook", notebook).refusal.empty());
  notebook.lightning = v1_6;
  CHECK(choose_strategy("dp", notebook).refusal.empty());
  CHECK_FALSE(choose_strategy("ddp_spawn", notebook).refusal.empty());
  notebook.lightning = v1_5;
  CHECK(choose_strategy("ddp_spawn", notebook).refusal.empty());
}

TEST_CASE("fsdp needs GPUs and dp one node") {
  StrategySituation cpu = on(v2_6);
  cpu.cpu = true;
  CHECK_FALSE(choose_strategy("fsdp", cpu).refusal.empty());
  CHECK_FALSE(choose_strategy("dp", on(v1_6, 4, 2)).refusal.empty());
}

TEST_CASE("a removed strategy names the newest version that has it") {
  CHECK(newest_with_strategy("dp") == Version{1, 9, 5});
  CHECK(newest_with_strategy("DDPSpawnStrategy") == Version{1, 9, 5});
  CHECK(newest_with_strategy("ddp2") == Version{1, 6, 5});
  CHECK_FALSE(newest_with_strategy("ddp").has_value());
  CHECK_FALSE(newest_with_strategy("auto").has_value());
}

namespace {

StrategySituation on_tpus(Version lightning, int64_t devices = 8) {
  StrategySituation situation = on(lightning, devices);
  situation.device = DeviceType::tpu;
  return situation;
}

}  // namespace

// accelerator_connector.py, _choose_strategy and _lazy_init_strategy; strategies/xla.py.
TEST_CASE("TPUs are driven by XLA's strategies alone, and GPUs never") {
  for (const Version& lightning : {v1_6, v1_9, v2_0, v2_6}) {
    CHECK(choose_strategy("auto", on_tpus(lightning)).name == "xla");
    CHECK(choose_strategy("auto", on_tpus(lightning)).start == StartMethod::fork);
    CHECK(choose_strategy("auto", on_tpus(lightning, 1)).name == "single_xla");
    CHECK(choose_strategy("auto", on_tpus(lightning)).refusal.empty());
    CHECK(choose_strategy("deepspeed", on_tpus(lightning)).refusal.find("can only be used with") !=
          std::string::npos);
  }
  CHECK(choose_strategy("ddp", on_tpus(v2_6)).refusal ==
        "The `XLAAccelerator` can only be used with a `SingleDeviceXLAStrategy` or `XLAStrategy`, "
        "found DDPStrategy");
  CHECK(choose_strategy("ddp", on_tpus(v1_9)).refusal ==
        "The `TPUAccelerator` can only be used with a `SingleTPUStrategy` or `TPUSpawnStrategy`, "
        "found DDPStrategy");
  for (const char* name : {"xla", "xla_debug", "XLAStrategy", "single_xla"}) {
    CHECK(choose_strategy(name, on_tpus(v2_6)).refusal.empty());
    CHECK(choose_strategy(name, on(v2_6)).refusal.find("needs a TPU") != std::string::npos);
  }
  CHECK(is_refused("XLAFSDPStrategy", v2_6));
}

TEST_CASE("XLAStrategy does not run on one device from 2.1 on") {
  CHECK_FALSE(choose_strategy("xla", on_tpus(v2_6, 1)).refusal.empty());
  CHECK(choose_strategy("xla", on_tpus(v2_0, 1)).refusal.empty());
  CHECK(choose_strategy("TPUSpawnStrategy", on_tpus(v1_9, 1)).refusal.empty());
}

TEST_CASE("MPS takes strategies of one process") {
  StrategySituation mac = on(v2_6, 1);
  mac.device = DeviceType::mps;
  CHECK(choose_strategy("auto", mac).name == "single_device");
  CHECK(choose_strategy("auto", mac).refusal.empty());
  CHECK(choose_strategy("ddp", mac).refusal.find("not supported on the MPS accelerator") !=
        std::string::npos);
  CHECK_FALSE(choose_strategy("fsdp", mac).refusal.empty());
}

}  // namespace strategy_choice_test
