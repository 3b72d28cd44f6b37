#include "model/strategy/sharded/deepspeed/configured_objects.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/spelling.hpp"

namespace lockstep {

namespace {

using Value = StrategyArguments::Value;
using ClassNames = std::vector<std::string_view>;

enum class ParameterType : uint8_t { number, truth, text, numbers };

struct ParameterRow {
  std::string_view name;
  ParameterType type = ParameterType::number;
  bool may_be_none = false;
};

/// A class that a section may name, and what its constructor takes.
struct SectionClass {
  std::string_view name;
  std::vector<ParameterRow> parameters;
  std::vector<std::string_view> required{};
};

constexpr ParameterRow betas_row{"betas", ParameterType::numbers};
constexpr auto truth_of = ParameterType::truth;
constexpr ParameterRow truth_row(std::string_view name) { return {name, truth_of, true}; }

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
const SectionClass torch_sgd = {"SGD",
                                {{"lr"},
                                 {"momentum"},
                                 {"dampening"},
                                 {"weight_decay"},
                                 truth_row("nesterov"),
                                 truth_row("maximize"),
                                 truth_row("foreach"),
                                 truth_row("differentiable"),
                                 truth_row("fused")}};

const std::vector<ParameterRow> of_warmup = {{"warmup_min_lr"},
                                             {"warmup_max_lr"},
                                             {"warmup_num_steps"},
                                             {"warmup_type", ParameterType::text, true},
                                             {"last_batch_iteration"}};

std::vector<ParameterRow> with_total(std::vector<ParameterRow> rows) {
  rows.insert(rows.begin(), {"total_num_steps"});
  return rows;
}

const std::vector<SectionClass> own_schedulers = {
    {"WarmupLR", of_warmup},
    {"WarmupDecayLR", with_total(of_warmup), {"total_num_steps"}},
    {"WarmupCosineLR",
     {{"total_num_steps"},
      {"warmup_min_ratio"},
      {"warmup_num_steps"},
      {"cos_min_ratio"},
      {"warmup_type", ParameterType::text},
      {"last_batch_iteration"}},
     {"total_num_steps"}},
    {"OneCycle",
     {{"cycle_min_lr"},
      {"cycle_max_lr"},
      {"decay_lr_rate"},
      {"cycle_first_step_size"},
      {"cycle_second_step_size", ParameterType::number, true},
      {"cycle_first_stair_count"},
      {"cycle_second_stair_count", ParameterType::number, true},
      {"decay_step_size"},
      truth_row("cycle_momentum"),
      {"cycle_min_mom"},
      {"cycle_max_mom"},
      {"decay_mom_rate"},
      {"last_batch_iteration"}},
     {"cycle_min_lr", "cycle_max_lr"}},
    {"LRRangeTest",
     {{"lr_range_test_min_lr"},
      {"lr_range_test_step_size"},
      {"lr_range_test_step_rate"},
      truth_row("lr_range_test_staircase"),
      {"last_batch_iteration"}}}};

// Constructed by name from torch.optim, and DeepSpeed's own of which none is modelled.
const ClassNames further_of_torch = {"Adagrad", "Adadelta", "Adamax",   "NAdam",
                                     "RAdam",   "RMSprop",  "ASGD",     "SparseAdam",
                                     "Rprop",   "LBFGS",    "Adafactor"};
const ClassNames further_of_deepspeed = {"adagrad",    "lamb",        "lion",
                                         "muadam",     "muadamw",     "musgd",
                                         "onebitadam", "zerooneadam", "onebitlamb"};
constexpr std::string_view modelled_instead = "Adam, AdamW and SGD are modelled";

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char letter) {
    return 'A' <= letter && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return text;
}

/// "optimizer" or "scheduler" of a configuration.
class Section {
 public:
  Section(const StrategyArguments& arguments, std::string_view name)
      : arguments_(arguments), name_(fmt::format("config.{}", name)) {}

  bool is_there() const {
    return std::ranges::any_of(arguments_.all(), [this](const auto& each) {
      return each.first == name_ || each.first.starts_with(name_ + ".");
    });
  }
  const std::string& name() const { return name_; }
  std::string type_name() const { return name_ + ".type"; }
  bool has_type() const { return arguments_.has(type_name()); }
  std::string type() const { return arguments_.text(type_name(), ""); }
  std::string parameter_name(std::string_view parameter) const {
    return fmt::format("{}.params.{}", name_, parameter);
  }
  bool has(std::string_view parameter) const { return arguments_.has(parameter_name(parameter)); }
  bool truth(std::string_view parameter, bool otherwise) const {
    return arguments_.boolean(parameter_name(parameter), otherwise);
  }
  double number(std::string_view parameter, double otherwise) const {
    return arguments_.number(parameter_name(parameter), otherwise);
  }
  bool has_parameters() const {
    const std::string prefix = name_ + ".params.";
    return std::ranges::any_of(
        arguments_.all(), [&prefix](const auto& each) { return each.first.starts_with(prefix); });
  }

  /// `params` is a map, or none.
  void check_parameters() const {
    if (arguments_.has(name_ + ".params")) {
      throw ArgumentProblem("`params` of a DeepSpeed configuration holds names and values",
                            name_ + ".params", "write {\"type\": .., \"params\": {..}}");
    }
  }

  /// Its parameters but those that the engine takes out, checked as the constructor does.
  ConfiguredObject object(const SectionClass& of, const ClassNames& taken = {}) const {
    ConfiguredObject made{name_, std::string(of.name)};
    const std::string prefix = name_ + ".params.";
    for (const auto& [name, value] : arguments_.all()) {
      const std::string own = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
      if (own.empty() || std::ranges::count(taken, own) != 0) {
        continue;
      }
      const auto row = std::ranges::find(of.parameters, own, &ParameterRow::name);
      if (row == of.parameters.end()) {
        ClassNames known;
        std::ranges::transform(of.parameters, std::back_inserter(known), &ParameterRow::name);
        throw RefusedArgument(
            fmt::format("TypeError: {}.__init__() got an unexpected keyword argument '{}'", of.name,
                        own),
            name, did_you_mean(own, known));
      }
      check_type(of, *row, name, value);
      made.arguments.emplace_back(own, name);
    }
    for (const std::string_view name : of.required) {
      if (!has(name)) {
        throw RefusedArgument(
            fmt::format("TypeError: {}.__init__() missing a required argument: '{}'", of.name,
                        name),
            name_);
      }
    }
    return made;
  }

 private:
  // HuggingFace's Trainer fills "auto" in; Lightning hands the section on as it is.
  static void check_type(const SectionClass& of, const ParameterRow& row, const std::string& name,
                         const Value& value) {
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && *text == "auto") {
      throw RefusedArgument(
          fmt::format(
              "TypeError: `{}` of {} is the text \"auto\", which Lightning does not fill in",
              row.name, of.name),
          name, "write its value");
    }
    const auto* several = std::get_if<std::vector<std::string>>(&value);
    const bool fits =
        row.type == ParameterType::number
            ? std::holds_alternative<double>(value) || std::holds_alternative<int64_t>(value)
        : row.type == ParameterType::truth ? std::holds_alternative<bool>(value)
        : row.type == ParameterType::text  ? text != nullptr
                                           : several != nullptr && several->size() == 2;
    if (std::holds_alternative<std::monostate>(value) && !row.may_be_none) {
      throw RefusedArgument(fmt::format("TypeError: `{}` of {} is null, which Python reads as None",
                                        row.name, of.name),
                            name, "leave it out for its default, or write its value");
    }
    if (!fits && !std::holds_alternative<std::monostate>(value)) {
      throw ArgumentProblem(fmt::format("`{}` of {} must be {}", row.name, of.name,
                                        row.type == ParameterType::number  ? "a number"
                                        : row.type == ParameterType::truth ? "true or false"
                                        : row.type == ParameterType::text  ? "a text"
                                                                           : "two numbers"),
                            name, "write its value, or leave it out for its default");
    }
  }

  const StrategyArguments& arguments_;
  std::string name_;
};

int64_t stage_of(const StrategyArguments& arguments) {
  return static_cast<int64_t>(arguments.number("config.zero_optimization.stage", 0));
}

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
  if (!section.truth("bias_correction", true) || section.truth("amsgrad", false)) {
    throw UnmodelledArgument(
        "Adam of a DeepSpeed configuration is modelled with `bias_correction` and without "
        "`amsgrad`",
        section.parameter_name(section.truth("amsgrad", false) ? "amsgrad" : "bias_correction"));
  }
  const bool is_on_host = offloads(arguments);
  ConfiguredObject made = section.object(
      is_on_host ? host_adam : fused_adam,
      {"torch_adam", "adam_w_mode", "bias_correction", "amsgrad"});  // which say nothing more
  made.switches.emplace_back(is_on_host ? "adamw_mode" : "adam_w_mode", decouples);
  return made;
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
  if (std::ranges::count(further_of_deepspeed, lower) != 0 ||
      std::ranges::count(further_of_torch, type) != 0) {
    throw UnmodelledArgument(fmt::format("the optimizer {} of a DeepSpeed configuration is not "
                                         "modelled: {}",
                                         type, modelled_instead),
                             section.type_name());
  }
  if (type != torch_sgd.name) {
    ClassNames known = further_of_torch;
    known.insert(known.end(), {"Adam", "AdamW", "SGD"});
    throw RefusedArgument(
        fmt::format("AttributeError: module 'torch.optim' has no attribute '{}'", type),
        section.type_name(), did_you_mean(type, known));
  }
  if (stage_of(arguments) > 0 &&
      !arguments.boolean("config.zero_allow_untested_optimizer", false)) {
    throw RefusedArgument(
        "AssertionError: You are using an untested ZeRO Optimizer. Please add "
        "<\"zero_allow_untested_optimizer\": true> in the configuration file to use it.",
        section.type_name(), "add it, or use Adam or AdamW");
  }
  return section.object(torch_sgd);
}

// Of torch where DeepSpeed has none of the name. ZeRO's optimizer is no torch.optim.Optimizer.
ConfiguredObject scheduler_of(const StrategyArguments& arguments, const Section& section) {
  const std::string type = section.type();
  if (!section.has_parameters()) {
    throw RefusedArgument(
        fmt::format("TypeError: {}: `scheduler` of the configuration has no `params`", type),
        section.name(), "write `params` with at least one parameter; an empty map counts as none");
  }
  const auto own = std::ranges::find(own_schedulers, type, &SectionClass::name);
  if (own != own_schedulers.end()) {
    if (section.number("last_batch_iteration", -1) != -1) {
      throw UnmodelledArgument("`last_batch_iteration` continues a training; a scenario begins one",
                               section.parameter_name("last_batch_iteration"));
    }
    return section.object(*own);
  }
  const ClassNames of_torch = {
      "StepLR",           "MultiStepLR",       "ConstantLR",
      "LinearLR",         "ExponentialLR",     "PolynomialLR",
      "OneCycleLR",       "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
      "CyclicLR",         "LambdaLR",          "ReduceLROnPlateau",
      "MultiplicativeLR", "SequentialLR",      "ChainedScheduler"};
  if (std::ranges::count(of_torch, type) == 0) {
    ClassNames known;
    std::ranges::transform(own_schedulers, std::back_inserter(known), &SectionClass::name);
    throw RefusedArgument(
        fmt::format("AssertionError: DeepSpeed does not recognize LR scheduler {}", type),
        section.type_name(), did_you_mean(type, known));
  }
  if (stage_of(arguments) > 0) {
    throw RefusedArgument(
        fmt::format("TypeError: {} is given the optimizer of ZeRO, which is not an Optimizer",
                    type),
        section.type_name(), "return it from configure_optimizers: lr_scheduler");
  }
  throw UnmodelledArgument(
      fmt::format("the scheduler {} of a DeepSpeed configuration is not modelled: DeepSpeed's own "
                  "are, and the scenario's `lr_scheduler`",
                  type),
      section.type_name());
}

// Without a name the engine has no optimizer: ZeRO 1 and 2 refuse to begin, the others to step.
void require_type(const StrategyArguments& arguments, const Section& section) {
  const int64_t stage = stage_of(arguments);
  if (!section.has_type()) {
    throw RefusedArgument(
        fmt::format("AssertionError: {}: `optimizer` of the configuration has no `type`",
                    stage != 1 && stage != 2
                        ? "must provide optimizer during init in order to use step"
                        : fmt::format("zero stage {} requires an optimizer", stage)),
        section.name(), "write {\"type\": .., \"params\": {..}}");
  }
}

}  // namespace

ConfiguredObjects deepspeed_objects(const StrategyArguments& arguments) {
  ConfiguredObjects objects;
  if (const Section optimizer(arguments, "optimizer"); optimizer.is_there()) {
    require_type(arguments, optimizer);
    optimizer.check_parameters();
    if (arguments.boolean("config.optimizer.legacy_fusion", false)) {
      throw UnmodelledArgument("`legacy_fusion` of a DeepSpeed configuration is not modelled",
                               "config.optimizer.legacy_fusion");
    }
    objects.optimizer = optimizer_of(arguments, optimizer);
  }
  if (const Section scheduler(arguments, "scheduler"); scheduler.has_type()) {
    scheduler.check_parameters();
    objects.scheduler = scheduler_of(arguments, scheduler);
  }
  return objects;
}

bool has_unnamed_scheduler(const StrategyArguments& arguments) {
  const Section scheduler(arguments, "scheduler");
  return scheduler.is_there() && !scheduler.has_type();
}

}  // namespace lockstep
