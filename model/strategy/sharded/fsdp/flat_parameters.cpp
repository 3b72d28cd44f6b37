#include "model/strategy/sharded/fsdp/flat_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/strategy/arguments.hpp"

namespace lockstep {

namespace {

struct FlattenedModule {
  WrappedModule module;
  bool is_root = false;
  std::optional<ParameterPlace> frozen{};
  std::optional<ParameterPlace> trained{};
  bool is_mixed() const { return frozen && trained; }
};

// In the order in which they are wrapped: inner ones first, and the whole model last.
std::vector<FlattenedModule> flattened_modules(const Network& network, const WrapPolicy& policy) {
  std::vector<FlattenedModule> modules{{{0, network.layers.size() - 1}, true}};
  for (const WrappedModule& module : wrapped_modules(network, policy)) {
    modules.push_back({module});
  }
  const std::vector<bool> ignored = ignored_layers(network, policy);
  for (const ParameterPlace place : network.parameters()) {
    if (ignored[place.layer]) {
      continue;
    }
    size_t owner = 0;
    for (size_t index = 1; index < modules.size(); ++index) {
      owner = modules[index].module.contains(place.layer) ? index : owner;
    }
    std::optional<ParameterPlace>& first =
        network.parameter(place).trainable ? modules[owner].trained : modules[owner].frozen;
    first = first.value_or(place);
  }
  std::ranges::stable_sort(modules, [](const FlattenedModule& a, const FlattenedModule& b) {
    if (a.is_root != b.is_root) {
      return b.is_root;
    }
    return a.module.last != b.module.last ? a.module.last < b.module.last
                                          : a.module.first > b.module.first;
  });
  return modules;
}

}  // namespace

// _validate_tensors_to_flatten of torch/distributed/fsdp/_flat_param.py; _validate_frozen_params of
// wrap.py looks at modules that a policy object names, before. _init_flat_param of flat_param.py
// up to torch 2.0.1 does not ask for use_orig_params.
void refuse_partly_frozen(const Network& network, const WrapPolicy& policy,
                          const FlatParameterRules& rules) {
  const std::vector<FlattenedModule> modules = flattened_modules(network, policy);
  const auto mixed = std::ranges::find_if(modules, &FlattenedModule::is_mixed);
  if (mixed == modules.end()) {
    return;
  }
  std::string raises =
      "Must flatten tensors with uniform `requires_grad` when "
      "`use_orig_params=False`";
  if (rules.is_older) {
    raises = "`FlatParameter` requires uniform `requires_grad`";
  } else if (rules.names_modules && !mixed->is_root) {
    raises =
        "a wrapped module has both parameters with requires_grad=True and False. FSDP does "
        "not support wrapping such modules when use_orig_params=False.";
  }
  throw RefusedArgument(
      fmt::format("ValueError: {} ({} is frozen and {} is trained, both in {})", raises,
                  network.parameter_name(*mixed->frozen), network.parameter_name(*mixed->trained),
                  mixed->is_root ? "the unit of the whole model" : "one unit"),
      rules.is_older ? "auto_wrap_policy" : "use_orig_params",
      fmt::format("{}give frozen modules units of their own by auto_wrap_policy",
                  rules.is_older ? "use torch 2.1 or newer with use_orig_params: true, or "
                                 : "write use_orig_params: true, or "));
}

}  // namespace lockstep
