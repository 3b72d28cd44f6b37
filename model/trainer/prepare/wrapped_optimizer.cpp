#include "model/trainer/prepare/wrapped_optimizer.hpp"

namespace lockstep {

std::optional<Object> wrapped_optimizer(const Object& optimizer) {
  const PlainValue* const inner = optimizer.find("optimizer_class");
  const std::string* const name = inner == nullptr ? nullptr : inner->get_if<std::string>();
  if (optimizer.name != "ZeroRedundancyOptimizer" || name == nullptr) {
    return std::nullopt;
  }
  Object held = optimizer;
  const size_t dot = name->rfind('.');  // torch.optim.Adam
  held.name = dot == std::string::npos ? *name : name->substr(dot + 1);
  std::erase_if(held.arguments, [](const ObjectArgument& argument) {
    return argument.name == "optimizer_class" || argument.name == "parameters_as_bucket_view" ||
           argument.name == "overlap_with_ddp" || argument.name == "process_group";
  });
  return held;
}

}  // namespace lockstep
