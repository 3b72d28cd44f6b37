#include "model/strategy/sharded/dtype_argument.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "model/core/spelling.hpp"

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
  std::vector<std::string_view> known;
  for (const auto& [text, dtype] : names) {
    if (asked == text) {
      return dtype;
    }
    known.push_back(text);
  }
  throw ArgumentProblem(
      fmt::format("strategy argument {} must be one of {}", name, fmt::join(known, ", ")), name,
      did_you_mean(asked, known));
}

}  // namespace lockstep
