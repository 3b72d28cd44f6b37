#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace lockstep {

namespace {
constexpr int64_t default_min_num_params = 100'000'000;  // torch/distributed/fsdp/wrap.py
}  // namespace

DType dtype_argument(const StrategyArguments& arguments, const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, DType>, 6> names{
      {{"fp32", DType::fp32},
       {"fp16", DType::fp16},
       {"bf16", DType::bf16},
       {"float32", DType::fp32},
       {"float16", DType::fp16},
       {"bfloat16", DType::bf16}}};
  std::string asked = arguments.text(name, "");
  if (asked.starts_with("torch.")) {
    asked.erase(0, std::string_view("torch.").size());
  }
  for (const auto& [text, dtype] : names) {
    if (asked == text) {
      return dtype;
    }
  }
  throw std::invalid_argument(
      fmt::format("strategy argument {} must be one of fp32, fp16, bf16, float32, float16, "
                  "bfloat16",
                  name));
}

WrapPolicy wrap_classes(const std::vector<std::string>& classes) {
  WrapPolicy policy;
  if (classes == std::vector<std::string>{"blocks"}) {
    policy.repeated_blocks = true;
  } else {
    policy.classes = classes;
  }
  return policy;
}

std::vector<std::string> policy_classes(const StrategyArguments& arguments,
                                        const std::string& name) {
  std::vector<std::string> named;
  for (const char* classes : {"", ".ModuleWrapPolicy.module_classes",
                              ".transformer_auto_wrap_policy.transformer_layer_cls"}) {
    if (arguments.has(name + classes)) {
      named = arguments.texts(name + classes);
    }
  }
  return named;
}

WrapPolicy wrap_policy(const StrategyArguments& arguments) {
  const std::string name = "auto_wrap_policy";
  const std::string by_size = name + ".size_based_auto_wrap_policy";
  WrapPolicy policy = wrap_classes(policy_classes(arguments, name));
  if (policy.classes == std::vector<std::string>{"size_based_auto_wrap_policy"}) {
    policy.classes.clear();
    policy.min_num_params = default_min_num_params;
  }
  if (arguments.has(by_size + ".min_num_params")) {
    policy.min_num_params = arguments.integer(by_size + ".min_num_params", 0);
    if (policy.min_num_params < 1) {
      throw std::invalid_argument("strategy argument min_num_params must be at least 1");
    }
  }
  return policy;
}

void check_classes(const WrapPolicy& policy, const Network& network, const std::string& name) {
  const std::vector<std::string> known = module_classes(network);
  for (const std::string& class_name : policy.classes) {
    if (std::find(known.begin(), known.end(), class_name) == known.end()) {
      throw std::invalid_argument(fmt::format("{}: no module of this model is a {}; it has {}",
                                              name, class_name, fmt::join(known, ", ")));
    }
  }
}

DeviceMesh mesh_argument(const TrainingPlan& plan, const StrategyArguments& arguments,
                         const std::string& name) {
  const std::vector<std::string> sizes = arguments.texts(name);
  int64_t product = 1;
  for (const std::string& size : sizes) {
    const bool is_number =
        !size.empty() && size.size() < 8 &&
        std::all_of(size.begin(), size.end(), [](char each) { return each >= '0' && each <= '9'; });
    product *= is_number ? std::stoll(size) : 0;
  }
  if (sizes.size() != 2 || product < 1 || (plan.world_size > 0 && product != plan.world_size)) {
    throw std::invalid_argument(
        fmt::format("{} is [replicas, shards], whose product is the number of ranks", name));
  }
  return {std::stoi(sizes[0]), std::stoi(sizes[1])};
}

// What a map holds under a name that it does not have would have no effect.
void check_nested_names(const StrategyArguments& arguments, const NestedNames& names) {
  for (const auto& [name, value] : arguments.all()) {
    if (name.find('.') == std::string::npos) {
      continue;
    }
    if (std::ranges::count(names.unmodelled, name) != 0) {
      throw UnmodelledArgument(
          fmt::format("`{}` of {} is not modelled yet", name, names.class_name));
    }
    if (std::ranges::count(names.known, name) == 0) {
      throw std::invalid_argument(fmt::format("{} has no argument `{}`; known here are {}",
                                              names.class_name, name,
                                              fmt::join(names.known, ", ")));
    }
  }
}

}  // namespace lockstep
