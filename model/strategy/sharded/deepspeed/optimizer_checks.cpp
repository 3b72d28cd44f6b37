#include "model/strategy/sharded/deepspeed/optimizer_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "model/strategy/local_model/optimizer.hpp"
#include "model/strategy/sharded/deepspeed/configuration_section.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_argument_rows.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_configuration.hpp"

namespace lockstep {

namespace {

/// A class, and the first release that has it in a list.
struct FirstRelease {
  std::string_view class_name;
  Version since{};
};

bool is_among_classes(std::span<const FirstRelease> rows, std::string_view name,
                      const Version& release) {
  return std::ranges::any_of(rows, [&](const FirstRelease& row) {
    return row.class_name == name && release >= row.since;
  });
}

// ZERO_SUPPORTED_OPTIMIZERS of runtime/zero/utils.py, of which every release is compared by its
// exact type: Lion of lion-pytorch is never among them.
constexpr auto tested_classes = std::to_array<FirstRelease>({{"Adam"},
                                                             {"AdamW"},
                                                             {"FusedAdam"},
                                                             {"DeepSpeedCPUAdam"},
                                                             {"Adagrad", {0, 9, 2}},
                                                             {"DeepSpeedCPUAdagrad", {0, 9, 2}},
                                                             {"FusedLion", {0, 11, 1}},
                                                             {"DeepSpeedCPULion", {0, 11, 1}}});

// runtime/engine.py, _configure_optimizer. It never exempts DeepSpeedCPUAdagrad.
constexpr auto classes_in_host_memory =
    std::to_array<FirstRelease>({{"DeepSpeedCPUAdam"}, {"DeepSpeedCPULion", {0, 17, 6}}});
constexpr Version first_that_forces{0, 8, 3};

// The argument that offloads, as the scenario writes it.
std::string offloading_argument(const StrategyArguments& arguments) {
  const std::string zero = "config.zero_optimization.";
  for (const std::string& name : {zero + "offload_optimizer.device", zero + "cpu_offload",
                                  std::string("offload_optimizer"), std::string("cpu_offload")}) {
    if (arguments.has(name)) {
      return name;
    }
  }
  return "";
}

// _do_optimizer_sanity_check. Lightning's own configuration allows all of them by default.
void check_tested(std::string_view name, const TrainingPlan& plan,
                  const StrategyArguments& arguments, const DeepSpeedOptions& options) {
  const bool is_configured = has_deepspeed_configuration(arguments);
  const std::string key =
      is_configured ? "config.zero_allow_untested_optimizer" : "zero_allow_untested_optimizer";
  if (options.stage == 0 || arguments.boolean(key, !is_configured) ||
      is_among_classes(tested_classes, name, plan.deepspeed)) {
    return;
  }
  throw RefusedArgument(
      fmt::format("AssertionError: You are using an untested ZeRO Optimizer ({}). Please add "
                  "<\"zero_allow_untested_optimizer\": true> in the configuration file to use it.",
                  name),
      arguments.has(key) ? key : "", "add it, or use Adam or AdamW");
}

// Also at stage 0: only whether there is a device is asked. Lightning hands over none where
// `zero_optimization` is false.
void check_on_host(std::string_view name, const TrainingPlan& plan,
                   const StrategyArguments& arguments, const DeepSpeedOptions& options) {
  const bool is_handed_over =
      has_deepspeed_configuration(arguments) ||
      StrategyArgumentReader(arguments, deepspeed_arguments()).boolean("zero_optimization");
  if (!options.offloads_optimizer || !is_handed_over ||
      !arguments.boolean("config.zero_force_ds_cpu_optimizer", true) ||
      may_update_offloaded(name, plan.deepspeed)) {
    return;
  }
  throw RefusedArgument(
      fmt::format("ZeRORuntimeException: You are using ZeRO-Offload with a client provided "
                  "optimizer ({}), which DeepSpeed refuses from 0.8.3 on unless "
                  "`zero_force_ds_cpu_optimizer` of its configuration is false",
                  name),
      offloading_argument(arguments),
      "use DeepSpeedCPUAdam, or write config: {zero_force_ds_cpu_optimizer: false, ..}");
}

}  // namespace

bool may_update_offloaded(std::string_view optimizer, const Version& deepspeed) {
  return deepspeed < first_that_forces ||
         is_among_classes(classes_in_host_memory, optimizer, deepspeed);
}

// DEEPSPEED_OPTIMIZERS of runtime/config.py: 0.19.6 has these three, 0.19.7 has not, and
// torch.optim neither.
void check_optimizer_section(const TrainingPlan& plan, const StrategyArguments& arguments) {
  constexpr Version first_without{0, 19, 7};
  constexpr std::array<std::string_view, 3> compressed = {"onebitadam", "zerooneadam",
                                                          "onebitlamb"};
  const std::string key = "config.optimizer.type";
  const std::string type = arguments.text(key, "");
  if (plan.deepspeed >= first_without && plan.is_fitted &&
      std::ranges::count(compressed, in_lower_case(type)) != 0) {
    throw RefusedArgument(
        fmt::format("AssertionError: {} is not a supported DeepSpeed Optimizer: 0.19.7 has removed "
                    "the 1-bit optimizers",
                    type),
        key, "use Adam, AdamW or Lion");
  }
}

void check_client_optimizer(const TrainingPlan& plan, const StrategyArguments& arguments,
                            const DeepSpeedOptions& options) {
  if (!plan.names_optimizer || !plan.is_fitted || arguments.has("config.optimizer.type")) {
    return;
  }
  for (const OptimizerPlan& optimizer : plan.optimizers) {
    const std::string_view name = class_name_of(optimizer);
    check_on_host(name, plan, arguments, options);
    check_tested(name, plan, arguments, options);
  }
}

}  // namespace lockstep
