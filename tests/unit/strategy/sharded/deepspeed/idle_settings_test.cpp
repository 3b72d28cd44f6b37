// Settings of DeepSpeed that a training does not read (deepspeed/runtime/zero/stage_1_and_2.py and
// stage3.py, and swap_tensor of 0.16.4: who reads what).
#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"

using namespace lockstep;

namespace idle_settings_test {

namespace {

using Names = std::vector<std::string>;

StrategyArguments with(
    std::initializer_list<std::pair<const char*, StrategyArguments::Value>> given,
    const std::string& prefix = "") {
  StrategyArguments arguments;
  for (const auto& [name, value] : given) {
    arguments.set(prefix + name, value);
  }
  return arguments;
}

Names noted(const StrategyArguments& arguments, DType activation = DType::fp32) {
  TrainingPlan plan;
  plan.activation_dtype = activation;
  Names names;
  for (const auto& [name, why] : deepspeed().without_effect(plan, arguments)) {
    names.push_back(name);
    CHECK(why.find("has no effect") != std::string::npos);
  }
  return names;
}

}  // namespace

TEST_CASE("the loss scale is read under fp16 alone") {
  const StrategyArguments scaled =
      with({{"stage", int64_t{2}}, {"loss_scale", 1024.0}, {"hysteresis", int64_t{4}}});
  CHECK(noted(scaled) == Names{"loss_scale", "hysteresis"});
  CHECK(noted(scaled, DType::bf16) == Names{"loss_scale", "hysteresis"});
  CHECK(noted(scaled, DType::fp16).empty());
  const StrategyArguments configured =
      with({{"zero_optimization.stage", int64_t{2}}, {"fp16.loss_scale_window", int64_t{100}}},
           "config.");
  CHECK(noted(configured) == Names{"config.fp16.loss_scale_window"});
}

TEST_CASE("a value that is the default asks for nothing") {
  CHECK(
      noted(with({{"stage", int64_t{2}}, {"sub_group_size", int64_t{1'000'000'000'000}}})).empty());
  CHECK(noted(with({{"zero_optimization.stage", int64_t{2}},
                    {"zero_optimization.sub_group_size", 1e9},
                    {"zero_optimization.round_robin_gradients", false},
                    {"fp16.loss_scale", int64_t{0}},
                    {"zero_optimization.stage3_prefetch_bucket_size", std::string("auto")}},
                   "config."))
            .empty());
}

TEST_CASE("each stage has settings that the others do not read") {
  CHECK(noted(with({{"stage", int64_t{0}}, {"reduce_bucket_size", int64_t{1000}}})) ==
        Names{"reduce_bucket_size"});
  CHECK(noted(with({{"stage", int64_t{2}}, {"sub_group_size", int64_t{1000}}})) ==
        Names{"sub_group_size"});
  CHECK(noted(with({{"stage", int64_t{3}}, {"sub_group_size", int64_t{1000}}})).empty());
  const auto configured = [](int64_t stage) {
    return with({{"zero_optimization.stage", stage},
                 {"zero_optimization.round_robin_gradients", true},
                 {"zero_optimization.stage3_max_live_parameters", 1e6}},
                "config.");
  };
  const Names of_stage_3{"config.zero_optimization.stage3_max_live_parameters"};
  const Names of_partitions{"config.zero_optimization.round_robin_gradients"};
  CHECK(noted(configured(1)) == of_stage_3);
  CHECK(noted(configured(2)) == of_stage_3);
  CHECK(noted(configured(3)) == of_partitions);
}

TEST_CASE("stage 0 reads the loss scale without hysteresis, and divides as it is asked to") {
  const auto of_stage = [](int64_t stage, bool scatters = true) {
    return with({{"zero_optimization.stage", stage},
                 {"zero_optimization.reduce_scatter", scatters},
                 {"fp16.enabled", true},
                 {"fp16.hysteresis", int64_t{4}},
                 {"gradient_predivide_factor", 2.0}},
                "config.");
  };
  CHECK(noted(of_stage(0), DType::fp16) == Names{"config.fp16.hysteresis"});
  CHECK(noted(of_stage(1), DType::fp16) == Names{"config.gradient_predivide_factor"});
  CHECK(noted(of_stage(1, false), DType::fp16).empty());
}

TEST_CASE("buffers before a drive are read where something goes on to it") {
  StrategyArguments arguments = with({{"stage", int64_t{3}},
                                      {"offload_optimizer", true},
                                      {"block_size", int64_t{4096}},
                                      {"max_in_cpu", int64_t{1000}},
                                      {"params_buffer_count", int64_t{6}},
                                      {"optimizer_buffer_count", int64_t{6}}});
  CHECK(noted(arguments) ==
        Names{"block_size", "optimizer_buffer_count", "params_buffer_count", "max_in_cpu"});
  arguments.set("offload_optimizer_device", std::string("nvme"));
  CHECK(noted(arguments) == Names{"params_buffer_count", "max_in_cpu"});
  const StrategyArguments configured =
      with({{"zero_optimization.stage", int64_t{3}}, {"aio.block_size", int64_t{4096}}}, "config.");
  CHECK(noted(configured) == Names{"config.aio.block_size"});
}

}  // namespace idle_settings_test
