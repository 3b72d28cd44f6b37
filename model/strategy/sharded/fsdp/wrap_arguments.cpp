#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace lockstep {

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

void check_classes(const WrapPolicy& policy, const Network& network, const std::string& name) {
  const std::vector<std::string> known = module_classes(network);
  for (const std::string& class_name : policy.classes) {
    if (std::find(known.begin(), known.end(), class_name) == known.end()) {
      throw std::invalid_argument(fmt::format("{}: no module of this model is a {}; it has {}",
                                              name, class_name, fmt::join(known, ", ")));
    }
  }
}

}  // namespace lockstep
