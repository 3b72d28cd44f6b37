#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/core/spelling.hpp"

namespace lockstep {

namespace {
constexpr int64_t default_min_num_params = 100'000'000;  // torch/distributed/fsdp/wrap.py
}  // namespace

namespace {

struct PolicyArgument {
  std::string_view class_name;
  std::string_view argument;  ///< its first
  bool has_default = false;
};

// `{}` or nothing behind the name.
bool is_bare(const StrategyArguments::Value& value) {
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  return std::holds_alternative<std::monostate>(value) || (texts != nullptr && texts->empty());
}
constexpr PolicyArgument policy_arguments[] = {
    {"ModuleWrapPolicy", "module_classes"},
    {"transformer_auto_wrap_policy", "transformer_layer_cls"},
    {"size_based_auto_wrap_policy", "min_num_params", true}};

// Of a list within a list, what the inner one holds.
StrategyArguments::Value first_argument(const StrategyArguments::Value& value) {
  const auto* texts = std::get_if<std::vector<std::string>>(&value);
  if (texts == nullptr || texts->size() != 1) {
    return value;
  }
  const std::string& only = texts->front();
  if (!only.empty() && only.find_first_not_of("0123456789") == std::string::npos &&
      only.size() < 18) {
    return int64_t{std::stoll(only)};
  }
  if (!only.starts_with('[') || !only.ends_with(']')) {
    return value;
  }
  std::vector<std::string> inner;
  const std::string within = only.substr(1, only.size() - 2);
  for (size_t begin = 0; begin < within.size();) {
    const size_t end = std::min(within.find(", ", begin), within.size());
    inner.push_back(within.substr(begin, end - begin));
    begin = end + 2;
  }
  return inner;
}

StrategyArguments without_class_paths(const StrategyArguments& arguments) {
  constexpr std::string_view path = ".class_path";
  StrategyArguments plain = arguments;
  for (const auto& [name, value] : arguments.all()) {
    const auto* const text = std::get_if<std::string>(&value);
    if (text == nullptr || !name.ends_with(path)) {
      continue;
    }
    const std::string object = name.substr(0, name.size() - path.size());
    const std::string class_name = last_parts({*text}).front();
    const std::string given = object + ".init_args.";
    plain.erase(name);
    bool has_arguments = false;
    for (const auto& [other, its_value] : arguments.all()) {
      if (other.starts_with(given)) {
        plain.erase(other);
        plain.set(fmt::format("{}.{}.{}", object, class_name, other.substr(given.size())),
                  its_value);
        has_arguments = true;
      }
    }
    if (!has_arguments) {
      plain.erase(object + ".init_args");
      plain.set(object, class_name);
    }
  }
  return plain;
}

}  // namespace

std::vector<std::string> last_parts(std::vector<std::string> names) {
  for (std::string& name : names) {
    name = name.substr(name.rfind('.') + 1);
  }
  return names;
}

StrategyArguments with_named_objects(const StrategyArguments& arguments) {
  const StrategyArguments plain = without_class_paths(arguments);
  StrategyArguments named = plain;
  for (const auto& [name, value] : plain.all()) {
    for (const PolicyArgument& policy : policy_arguments) {
      if (name.ends_with(fmt::format(".{}", policy.class_name))) {
        named.erase(name);
        if (policy.has_default && is_bare(value)) {
          named.set(name.substr(0, name.rfind('.')), std::string(policy.class_name));
          continue;
        }
        named.set(fmt::format("{}.{}", name, policy.argument), first_argument(value));
      }
    }
  }
  return named;
}

StrategyArguments without_class_names(const StrategyArguments& arguments,
                                      std::span<const NestedClass> classes) {
  StrategyArguments plain = arguments;
  for (const auto& [name, value] : arguments.all()) {
    for (const NestedClass& nested : classes) {
      const std::string prefix = fmt::format("{}.{}.", nested.argument, nested.class_name);
      if (name.starts_with(prefix)) {
        plain.erase(name);
        plain.set(fmt::format("{}.{}", nested.argument, name.substr(prefix.size())), value);
      }
    }
  }
  return plain;
}

WrapPolicy wrap_classes(const std::vector<std::string>& classes) {
  WrapPolicy policy;
  if (classes == std::vector<std::string>{"blocks"}) {
    policy.repeated_blocks = true;
  } else {
    policy.classes = last_parts(classes);
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
  return last_parts(std::move(named));
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
      throw ArgumentProblem("strategy argument min_num_params must be at least 1",
                            by_size + ".min_num_params");
    }
  }
  return policy;
}

std::string what_wraps_nothing(const WrapPolicy& policy, const Network& network,
                               const std::string& name) {
  if (!wrapped_modules(network, policy).empty()) {
    const std::vector<std::string> known = module_classes(network);
    const auto absent = std::ranges::find_if(policy.classes, [&](const std::string& class_name) {
      return std::ranges::find(known, class_name) == known.end();
    });
    return absent == policy.classes.end()
               ? ""
               : fmt::format("`{}`: no module of this model is a {}; it has {}", name, *absent,
                             fmt::join(known, ", "));
  }
  const std::string one_unit = "the whole model is one unit, gathered at once";
  if (policy.repeated_blocks) {
    return fmt::format("`{}: blocks` wraps nothing, as no block of this model repeats: {}", name,
                       one_unit);
  }
  if (policy.min_num_params > 0) {
    return fmt::format("`{}` wraps nothing, as no module has {} parameters: {}", name,
                       policy.min_num_params, one_unit);
  }
  return fmt::format("`{}` wraps nothing: {}", name, one_unit);
}

// Policies of torch/distributed/fsdp/wrap.py that have no counterpart here.
void refuse_other_policies(const std::string& policy, const std::string& argument) {
  constexpr std::string_view others[] = {"always_wrap_policy", "lambda_auto_wrap_policy",
                                         "CustomPolicy", "_or_policy"};
  if (std::ranges::count(others, policy) > 0) {
    throw UnmodelledArgument(fmt::format("the policy `{}` is not modelled", policy), argument,
                             "write the classes that it wraps, as in [Linear], or blocks");
  }
}

// A policy is an isinstance test: of several classes one that no module is changes nothing.
void check_classes(const WrapPolicy& policy, const Network& network, const std::string& name) {
  const std::vector<std::string> known = module_classes(network);
  const auto is_known = [&known](const std::string& class_name) {
    return std::ranges::find(known, class_name) != known.end();
  };
  const bool some = std::ranges::any_of(policy.classes, is_known);
  for (const std::string& class_name : policy.classes) {
    refuse_other_policies(class_name, name);
    if (!some && !is_known(class_name)) {
      throw ArgumentProblem(fmt::format("{}: no module of this model is a {}; it has {}", name,
                                        class_name, fmt::join(known, ", ")),
                            name, did_you_mean(class_name, {known.begin(), known.end()}));
    }
  }
}

std::vector<std::string> ignored_modules(const StrategyArguments& arguments, const Network& network,
                                         const std::string& name) {
  if (!arguments.has(name)) {
    return {};
  }
  std::vector<std::string> known = module_classes(network);
  for (const Layer& layer : network.layers) {
    known.push_back(layer.name);
  }
  std::vector<std::string> ignored = arguments.texts(name);
  for (std::string& module : ignored) {
    if (module.starts_with("torch.nn.") || module.starts_with("nn.")) {
      module = last_parts({module}).front();
    }
    if (std::ranges::count(known, module) == 0) {
      const std::string near = did_you_mean(module, {known.begin(), known.end()});
      constexpr size_t shown = 6;
      known.resize(std::min(known.size(), shown));
      throw ArgumentProblem(
          fmt::format("{}: this model has no class and no layer `{}`", name, module), name,
          near.empty()
              ? fmt::format("write classes or layers of it, such as {}", fmt::join(known, ", "))
              : near);
    }
  }
  return ignored;
}

namespace {
// As sizes are written; nothing that is none is a mesh.
std::vector<int64_t> sizes_of_mesh(const StrategyArguments& arguments, const std::string& name) {
  std::vector<int64_t> sizes;
  for (const std::string& size : arguments.texts(name)) {
    const bool is_number =
        !size.empty() && size.size() < 8 &&
        std::all_of(size.begin(), size.end(), [](char each) { return each >= '0' && each <= '9'; });
    sizes.push_back(is_number ? std::stoll(size) : 0);
  }
  const bool is_mesh = sizes.size() == 2 && sizes[0] > 0 && sizes[1] > 0;
  return is_mesh ? sizes : std::vector<int64_t>();
}
}  // namespace

// torch/distributed/device_mesh.py refuses more than there are; with fewer, ranks have no place.
void refuse_untied(const WrapPolicy& policy, const Network& network, std::string_view wrapper,
                   const std::string& name) {
  for (const TiedOverModules& tied : tied_over_modules(network, policy)) {
    throw UnmodelledArgument(
        fmt::format("`{}` and `{}` share a weight and are in different units: {} unties them, and "
                    "each trains a weight of its own, which is not modelled",
                    network.layers[std::min(tied.owner, tied.other)].name,
                    network.layers[std::max(tied.owner, tied.other)].name, wrapper),
        name, "wrap neither of them, or a module that holds both");
  }
}

bool is_flat_mesh(const StrategyArguments& arguments, const std::string& name) {
  return arguments.texts(name).size() == 1;
}

DeviceMesh mesh_argument(int32_t ranks, const StrategyArguments& arguments,
                         const std::string& name) {
  const std::vector<int64_t> sizes = sizes_of_mesh(arguments, name);
  if (sizes.empty()) {
    throw ArgumentProblem(fmt::format("{} is [replicas, shards]", name), name,
                          "write two numbers, whose product is the number of ranks");
  }
  const int64_t product = sizes[0] * sizes[1];
  if (ranks > 0 && product > ranks) {
    throw RefusedArgument(
        fmt::format("RuntimeError: Mesh should not be bigger than default world size {}, but found "
                    "{} ranks! ({} is {} x {})",
                    ranks, product, name, sizes[0], sizes[1]),
        name, fmt::format("write [replicas, shards], whose product is {}", ranks));
  }
  if (ranks > 0 && product != ranks) {
    throw ArgumentProblem(fmt::format("{} must have as many places as there are ranks, {} (here "
                                      "{} x {} = {})",
                                      name, ranks, sizes[0], sizes[1], product),
                          name,
                          fmt::format("write [replicas, shards], whose product is {}", ranks));
  }
  return {static_cast<int32_t>(sizes[0]), static_cast<int32_t>(sizes[1])};
}

std::string mesh_of_size(const StrategyArguments& arguments, const std::string& name,
                         int64_t ranks) {
  const std::vector<int64_t> sizes = sizes_of_mesh(arguments, name);
  return sizes.empty() || ranks % sizes[1] != 0
             ? ""
             : fmt::format("[{}, {}]", ranks / sizes[1], sizes[1]);
}

namespace {

// Of the level at which the name is wrong, what may stand there.
std::vector<std::string_view> beside(std::string_view prefix,
                                     std::span<const std::string_view> names) {
  std::vector<std::string_view> parts;
  for (const std::string_view name : names) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    const std::string_view rest = name.substr(prefix.size());
    const std::string_view part = rest.substr(0, rest.find('.'));
    if (std::ranges::count(parts, part) == 0) {
      parts.push_back(part);
    }
  }
  return parts;
}

[[noreturn]] void refuse_name(const std::string& name, const NestedNames& names) {
  size_t begin = name.find('.') + 1;
  std::vector<std::string_view> parts = beside(name.substr(0, begin), names.known);
  for (size_t end = name.find('.', begin); end != std::string::npos; end = name.find('.', begin)) {
    if (std::ranges::count(parts, name.substr(begin, end - begin)) == 0) {
      break;
    }
    begin = end + 1;
    parts = beside(name.substr(0, begin), names.known);
  }
  const std::string of = name.substr(0, begin - 1);
  const std::string wrong = name.substr(begin, name.find('.', begin) - begin);
  refuse_other_policies(wrong, name);
  std::string remedy = did_you_mean(wrong, parts);
  if (remedy.empty() && parts.empty()) {
    remedy = fmt::format("`{}` is no map: write its value", of);
  }
  if (remedy.empty()) {
    remedy =
        fmt::format("{}{} takes {}",
                    of.ends_with("_policy") ? "write classes, as in [Linear], or blocks; " : "", of,
                    fmt::join(parts, ", "));
  }
  throw ArgumentProblem(fmt::format("`{}` of {} has no argument `{}`", of, names.class_name, wrong),
                        name, remedy);
}

}  // namespace

namespace {

// Truths that are false by default, but for this one.
bool is_default(const StrategyArguments::Value& value, std::string_view name) {
  const bool* truth = std::get_if<bool>(&value);
  const bool otherwise = name.ends_with("mp_policy.cast_forward_inputs") ||
                         name.ends_with("mixed_precision.cast_root_forward_inputs");
  return truth != nullptr && *truth == otherwise;
}

}  // namespace

// What a map holds under a name that it does not have would have no effect.
void check_nested_names(const StrategyArguments& arguments, const NestedNames& names) {
  for (const auto& [name, value] : arguments.all()) {
    if (name.find('.') == std::string::npos) {
      continue;
    }
    const bool is_unmodelled = std::ranges::any_of(names.unmodelled, [&](std::string_view each) {
      return name == each || name.starts_with(std::string(each) + ".");
    });
    if (is_unmodelled && !arguments.is_none(name) && !is_default(value, name)) {
      throw UnmodelledArgument(
          fmt::format("`{}` of {} is not modelled yet", name, names.class_name), name,
          "leave it out");
    }
    if (!is_unmodelled && std::ranges::count(names.known, name) == 0) {
      refuse_name(name, names);
    }
  }
}

}  // namespace lockstep
