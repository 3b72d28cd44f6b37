// What torch raises where an optimizer is made, and what is not modelled, with places and remedies.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace refused_optimizers_test {

namespace {

std::vector<Problem> stops_of_optimizer(const std::string& optimizer, const std::string& strategy) {
  std::vector<Problem> stops;
  for (const Problem& problem :
       prepare(scenario_of("version: 1\ntrainer: {accelerator: gpu, devices: 2, strategy: " +
                           strategy + ", max_epochs: 1}\noptimizer: " + optimizer + "\n"),
               standard_strategies())
           .problems) {
    if (problem.stops()) {
      stops.push_back(problem);
    }
  }
  return stops;
}

void stops_optimizer(const std::string& optimizer, Problem::Kind kind, const std::string& reason,
                     const std::string& strategy = "ddp") {
  INFO(optimizer);
  const std::vector<Problem> stops = stops_of_optimizer(optimizer, strategy);
  for (const Problem& stop : stops) {
    UNSCOPED_INFO(stop.message);
  }
  REQUIRE(stops.size() == 1);
  CHECK(stops.front().kind == kind);
  CHECK(stops.front().place.line == 3);
  CHECK(stops.front().place.column > 1);
  CHECK(stops.front().message.find(reason) != std::string::npos);
}

}  // namespace

TEST_CASE("optimizers refuse the values that their constructors refuse") {
  const auto refused = [](const std::string& optimizer, const std::string& reason) {
    stops_optimizer(optimizer, Problem::Kind::refused, reason);
  };
  refused("{Adagrad: {lr_decay: -1}}", "Invalid lr_decay value: -1");
  refused("{Adagrad: {initial_accumulator_value: -0.5}}",
          "Invalid initial_accumulator_value value: -0.5");
  refused("{Adadelta: {rho: 1.5}}", "Invalid rho value: 1.5");
  refused("{Adamax: {betas: [0.9, 1.0]}}", "Invalid beta parameter at index 1: 1.0");
  refused("{NAdam: {momentum_decay: -0.1}}", "Invalid momentum_decay value: -0.1");
  refused("{RAdam: {eps: -1e-8}}", "Invalid epsilon value: -1e-08");
  refused("{RMSprop: {alpha: -0.5}}", "Invalid alpha value: -0.5");
  refused("{Rprop: {etas: [0.5, 0.9]}}", "Invalid eta values: 0.5, 0.9");
  refused("{ASGD: {weight_decay: -1}}", "Invalid weight_decay value: -1");
  refused("{Adafactor: {eps: [-1, 0.001]}}", "epsilon1 should be >= 0 but is: -1");
  refused("{Adafactor: {beta2_decay: 0.5}}", "beta2_decay should be <= 0 but is: 0.5");
  refused("{Lion: {lr: 0}}", "AssertionError: lr > 0.");
  refused("{SGD: {nesterov: true}}", "Nesterov momentum requires a momentum and zero dampening");
  CHECK(stops_of_optimizer("{ASGD: {alpha: -0.5}}", "ddp").empty());  // which torch does not check
  CHECK(stops_of_optimizer("{Adafactor: {eps: [null, 0.001]}}", "ddp").empty());
}

TEST_CASE("what optimizers have and is not modelled is named") {
  const auto unsupported = [](const std::string& optimizer, const std::string& reason,
                              const std::string& strategy = "ddp") {
    stops_optimizer(optimizer, Problem::Kind::unsupported, reason, strategy);
  };
  unsupported("{RMSprop: {foreach: true}}", "the argument `foreach` of RMSprop is not modelled");
  unsupported("{Lion: {use_triton: true}}", "the argument `use_triton` of Lion is not modelled");
  unsupported("{LBFGS: {lr: 1}}", "the optimizer LBFGS is not modelled yet");
  unsupported("{FusedAdam: {amsgrad: true}}", "`amsgrad` of FusedAdam is not modelled");
  unsupported("{Lamb: {lr: 0.1}}", "norms of whole tensors",
              "{PipelineStrategy: {schedule: GPipe}}");
  const std::vector<Problem> of_megatron = stops_of_optimizer(
      "{Lamb: {lr: 0.1}}", "{MegatronStrategy: {tensor_model_parallel_size: 2}}");
  REQUIRE(of_megatron.size() == 1);
  CHECK(of_megatron.front().message.find("its optimizer is Adam or SGD") != std::string::npos);
  for (const char* const strategy :
       {"fsdp", "deepspeed_stage_1",
        "{ModelParallelStrategy: {data_parallel_size: 2, tensor_parallel_size: 1}}"}) {
    CHECK(stops_of_optimizer("{Lamb: {lr: 0.1}}", strategy).empty());
  }
  CHECK(stops_of_optimizer("{FusedAdam: {bias_correction: false}}", "ddp").empty());
  CHECK(stops_of_optimizer("{Lamb: {lr: 0.1}}", "ddp").empty());
  CHECK(stops_of_optimizer("{RMSprop: {foreach: null}}", "ddp").empty());
}

TEST_CASE("an optimizer that takes norms is warned of where ranks hold parts of tensors") {
  const auto is_warned = [](const std::string& optimizer, const std::string& strategy) {
    const std::vector<Problem> problems =
        prepare(scenario_of("version: 1\ntrainer: {accelerator: gpu, devices: 2, strategy: " +
                            strategy + ", max_epochs: 1}\noptimizer: " + optimizer + "\n"),
                standard_strategies())
            .problems;
    return std::ranges::any_of(problems, [](const Problem& problem) {
      return problem.kind == Problem::Kind::warning &&
             problem.message.find("on each rank what that rank holds") != std::string::npos;
    });
  };
  for (const char* const strategy :
       {"fsdp", "deepspeed_stage_1", "deepspeed_stage_3",
        "{FSDPStrategy: {sharding_strategy: NO_SHARD, use_orig_params: false}}"}) {
    INFO(strategy);
    CHECK(is_warned("{Lamb: {lr: 0.1}}", strategy));
    CHECK(is_warned("{Adafactor: {lr: 0.1}}", strategy));
    CHECK_FALSE(is_warned("{AdamW: {lr: 0.1}}", strategy));
  }
  for (const char* const strategy :
       {"ddp", "{FSDPStrategy: {sharding_strategy: NO_SHARD}}",
        "{ModelParallelStrategy: {data_parallel_size: 2, tensor_parallel_size: 1}}"}) {
    INFO(strategy);
    CHECK_FALSE(is_warned("{Lamb: {lr: 0.1}}", strategy));
  }
}

}  // namespace refused_optimizers_test
