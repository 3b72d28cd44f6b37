// The optimizer of a DeepSpeed configuration.
#include <fmt/format.h>

#include <algorithm>

#include "model/core/spelling.hpp"
#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/sharded/deepspeed/configuration_section.hpp"

namespace lockstep {

namespace {

constexpr ParameterRow betas_row{"betas", ParameterType::numbers};

const SectionClass fused_adam = {"FusedAdam",
                                 {{"lr"},
                                  truth_row("bias_correction"),
                                  betas_row,
                                  {"eps"},
                                  {"weight_decay"},
                                  truth_row("amsgrad"),
                                  truth_row("set_grad_none")}};
const SectionClass host_adam = {"DeepSpeedCPUAdam",
                                {{"lr"},
                                 truth_row("bias_correction"),
                                 betas_row,
                                 {"eps"},
                                 {"weight_decay"},
                                 truth_row("amsgrad"),
                                 truth_row("fp32_optimizer_states")}};
const std::vector<ParameterRow> of_torch_adam = {{"lr"},
                                                 betas_row,
                                                 {"eps"},
                                                 {"weight_decay"},
                                                 truth_row("amsgrad"),
                                                 truth_row("foreach"),
                                                 truth_row("maximize"),
                                                 truth_row("capturable"),
                                                 truth_row("differentiable"),
                                                 truth_row("fused")};
const SectionClass fused_lion = {"FusedLion",
                                 {{"lr"}, betas_row, {"weight_decay"}, truth_row("set_grad_none")}};
const SectionClass host_lion = {
    "DeepSpeedCPULion", {{"lr"}, betas_row, {"weight_decay"}, truth_row("fp32_optimizer_states")}};

const SectionClass host_adagrad = {
    "DeepSpeedCPUAdagrad",
    {{"lr"}, {"eps"}, {"weight_decay"}, truth_row("amsgrad"), truth_row("fp32_optimizer_states")}};

/// A class of torch.optim, as its rule says.
SectionClass class_of_torch(const OptimizerRule& rule) {
  SectionClass of{rule.name(), {}};
  for (const OptimizerArgument& argument : rule.arguments()) {
    of.parameters.push_back({argument.name, argument.second != nullptr  ? ParameterType::numbers
                                            : argument.truth != nullptr ? ParameterType::truth
                                                                        : ParameterType::number});
  }
  for (const std::string_view name : rule.other_arguments()) {
    of.parameters.push_back(truth_row(name));
  }
  return of;
}

// Constructed by name from torch.optim, and of DeepSpeed those that are not modelled.
const ClassNames modelled_of_torch = {"SGD",   "Adagrad", "Adadelta", "Adamax", "NAdam",
                                      "RAdam", "RMSprop", "ASGD",     "Rprop",  "Adafactor"};
const ClassNames further_of_torch = {"SparseAdam", "LBFGS", "Muon"};
const ClassNames further_of_deepspeed = {"muadam",     "muadamw",     "musgd",
                                         "onebitadam", "zerooneadam", "onebitlamb"};
constexpr std::string_view modelled_instead =
    "Adam, AdamW, Lion, Adagrad and the others of torch.optim are modelled";

bool offloads(const StrategyArguments& arguments) {
  const std::string device =
      arguments.text("config.zero_optimization.offload_optimizer.device", "none");
  return device == "cpu" || device == "nvme";
}

ConfiguredObject adam_of(const StrategyArguments& arguments, const Section& section,
                         bool decouples) {
  const ClassNames taken = {"torch_adam", "adam_w_mode"};
  decouples = section.truth("adam_w_mode", true) || decouples;
  if (section.truth("torch_adam", false)) {
    return section.object({decouples ? "AdamW" : "Adam", of_torch_adam}, taken);
  }
  if (section.truth("amsgrad", false) && !offloads(arguments)) {
    throw RefusedArgument("RuntimeError: FusedAdam does not support the AMSGrad variant.",
                          section.parameter_name("amsgrad"),
                          "leave it out, or use torch_adam: true");
  }
  if (section.truth("amsgrad", false)) {
    throw UnmodelledArgument("Adam of a DeepSpeed configuration is modelled without `amsgrad`",
                             section.parameter_name("amsgrad"));
  }
  const bool is_on_host = offloads(arguments);
  ConfiguredObject made =
      section.object(is_on_host ? host_adam : fused_adam,
                     {"torch_adam", "adam_w_mode", "amsgrad"});  // which say nothing more
  made.switches.emplace_back(is_on_host ? "adamw_mode" : "adam_w_mode", decouples);
  return made;
}

// ZERO_SUPPORTED_OPTIMIZERS of deepspeed/runtime/zero/utils.py does not have it.
void require_untested_allowed(const StrategyArguments& arguments, const Section& section) {
  if (stage_of(arguments) > 0 &&
      !arguments.boolean("config.zero_allow_untested_optimizer", false)) {
    throw RefusedArgument(
        "AssertionError: You are using an untested ZeRO Optimizer. Please add "
        "<\"zero_allow_untested_optimizer\": true> in the configuration file to use it.",
        section.type_name(), "add it, or use Adam or AdamW");
  }
}

/// Of what is neither Adam nor Lion nor Adagrad: unknown, untested, or not modelled.
void check_further_type(const StrategyArguments& arguments, const Section& section,
                        const std::string& type, const std::string& lower) {
  if (lower != "lamb" && std::ranges::count(modelled_of_torch, type) == 0 &&
      std::ranges::count(further_of_torch, type) == 0 &&
      std::ranges::count(further_of_deepspeed, lower) == 0) {
    ClassNames known = further_of_torch;
    known.insert(known.end(), modelled_of_torch.begin(), modelled_of_torch.end());
    known.insert(known.end(), {"Adam", "AdamW", "Lion", "Lamb"});
    throw RefusedArgument(
        fmt::format("AssertionError: {} is not a supported DeepSpeed Optimizer", type),
        section.type_name(), did_you_mean(type, known));
  }
  if (std::ranges::count(further_of_deepspeed, lower) == 0) {
    require_untested_allowed(arguments, section);
  }
  if (lower == "lamb") {
    throw UnmodelledArgument(
        "FusedLamb is not modelled: it scales the step of each tensor by norms of that tensor, and "
        "ZeRO gives it one flat part of all of them, so that each rank scales its part otherwise",
        section.type_name(), "use Adam, AdamW or Lion");
  }
  if (std::ranges::count(modelled_of_torch, type) == 0) {
    throw UnmodelledArgument(fmt::format("the optimizer {} of a DeepSpeed configuration is not "
                                         "modelled: {}",
                                         type, modelled_instead),
                             section.type_name());
  }
}

}  // namespace

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char letter) {
    return 'A' <= letter && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return text;
}

// Names of DeepSpeed's own in any case, others as attributes of torch.optim.
ConfiguredObject optimizer_of(const StrategyArguments& arguments, const Section& section) {
  const std::string type = section.type();
  const std::string lower = in_lower_case(type);
  if (section.has("max_grad_norm")) {
    throw RefusedArgument(
        "ValueError: 'max_grad_norm' is not supported as an optimizer parameter, please switch to "
        "using the deepspeed parameter 'gradient_clipping'",
        section.parameter_name("max_grad_norm"), "write gradient_clipping beside `optimizer`");
  }
  if (lower == "adam" || lower == "adamw") {
    return adam_of(arguments, section, lower == "adamw");
  }
  const bool is_compressed = lower.starts_with("onebit") || lower == "zerooneadam";
  if (is_compressed && stage_of(arguments) > 0) {
    throw RefusedArgument(fmt::format("AssertionError: {} is not compatible with ZeRO", type),
                          section.type_name(), "use Adam, or zero_optimization: {stage: 0}");
  }
  if (lower == "lion") {
    return section.object(offloads(arguments) ? host_lion : fused_lion);
  }
  if (lower == "adagrad" && offloads(arguments)) {
    return section.object(host_adagrad);
  }
  if (lower == "adagrad") {  // which ZeRO knows
    return section.object(class_of_torch(rule_of(OptimizerKind::adagrad)));
  }
  check_further_type(arguments, section, type, lower);
  for (const OptimizerRule* const rule : optimizer_rules()) {
    if (rule->name() == type) {
      return section.object(class_of_torch(*rule));
    }
  }
  throw UnmodelledArgument(fmt::format("the optimizer {} is not modelled", type),
                           section.type_name());
}

}  // namespace lockstep
