// The keys of DeepSpeed's own configuration.
#include "model/strategy/sharded/deepspeed/deepspeed_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "model/core/spelling.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_key_tables.hpp"

namespace lockstep {

namespace {

using Names = DeepSpeedKeys;

/// A field of DeepSpeedZeroConfig that has another name beside (`populate_by_name`), or that was
/// replaced.
struct OtherName {
  std::string_view name;
  std::string_view of_today;
};
const std::vector<OtherName> other_names = {
    {"zero_optimization.prefetch_bucket_size", "zero_optimization.stage3_prefetch_bucket_size"},
    {"zero_optimization.param_persistence_threshold",
     "zero_optimization.stage3_param_persistence_threshold"},
    {"zero_optimization.model_persistence_threshold",
     "zero_optimization.stage3_model_persistence_threshold"},
    {"zero_optimization.max_live_parameters", "zero_optimization.stage3_max_live_parameters"},
    {"zero_optimization.max_reuse_distance", "zero_optimization.stage3_max_reuse_distance"},
    {"zero_optimization.gather_16bit_weights_on_model_save",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save"},
    {"zero_optimization.module_granularity_threshold",
     "zero_optimization.stage3_module_granularity_threshold"},
    {"zero_optimization.use_all_reduce_for_fetch_params",
     "zero_optimization.stage3_use_all_reduce_for_fetch_params"},
    {"zero_optimization.allgather_sequential", "zero_optimization.stage3_allgather_sequential"}};
// Booleans that became groups: true is the host's memory.
const std::vector<OtherName> former_switches = {
    {"zero_optimization.cpu_offload", "zero_optimization.offload_optimizer.device"},
    {"zero_optimization.cpu_offload_param", "zero_optimization.offload_param.device"}};

const OtherName* find_name(const std::vector<OtherName>& names, std::string_view key) {
  const auto found = std::ranges::find(names, key, &OtherName::name);
  return found == names.end() ? nullptr : &*found;
}

std::string_view key_of_today(std::string_view key) {
  const OtherName* other = find_name(other_names, key);
  return other == nullptr ? key : other->of_today;
}

bool is_or_is_below(std::string_view key, std::string_view name) {
  return key == name || (key.starts_with(name) && key[name.size()] == '.');
}

bool is_among(const Names& names, std::string_view key) {
  return std::ranges::any_of(names,
                             [key](std::string_view name) { return is_or_is_below(key, name); });
}

bool is_empty_map(const StrategyArguments::Value& value) {
  const auto* list = std::get_if<std::vector<std::string>>(&value);
  return list != nullptr && list->empty();
}

// What a key says that asks for nothing: off, one part, the whole.
bool asks_for_nothing(const StrategyArguments::Value& value) {
  if (const bool* truth = std::get_if<bool>(&value)) {
    return !*truth;
  }
  if (const int64_t* number = std::get_if<int64_t>(&value)) {
    return *number <= 1;
  }
  if (is_empty_map(value)) {
    return true;
  }
  const double* number = std::get_if<double>(&value);
  return std::holds_alternative<std::monostate>(value) || (number != nullptr && *number == 1);
}

// Whether a key of the group asks for nothing.
bool is_off(const UnmodelledDeepSpeedKey& group, const StrategyArguments& arguments,
            const StrategyArguments::Value& value) {
  switch (group.off) {
    case UnmodelledDeepSpeedKey::Off::by_value: return asks_for_nothing(value);
    case UnmodelledDeepSpeedKey::Off::by_enabled:
      return asks_for_nothing(value) ||
             !arguments.boolean(fmt::format("config.{}.enabled", group.name), false);
    case UnmodelledDeepSpeedKey::Off::by_absence:
      return std::holds_alternative<std::monostate>(value);
    case UnmodelledDeepSpeedKey::Off::by_true: {
      const bool* truth = std::get_if<bool>(&value);
      return std::holds_alternative<std::monostate>(value) || (truth != nullptr && *truth);
    }
  }
  return false;
}

// A key that has others below it, given as a plain value.
bool is_group(std::string_view key) {
  return std::ranges::any_of(read_deepspeed_keys(), [key](std::string_view name) {
    return name.starts_with(key) && name.size() > key.size() && name[key.size()] == '.';
  });
}

/// Part of a path, from `begin` to the next dot or the end.
std::string_view part_at(std::string_view path, size_t begin) {
  return path.substr(begin, path.find('.', begin) - begin);
}

/// What may stand behind `prefix`, which is empty or ends with a dot.
Names parts_behind(std::string_view prefix) {
  Names parts;
  const auto add = [&](std::string_view name) {
    if (name.starts_with(prefix)) {
      const std::string_view part = part_at(name, prefix.size());
      if (std::ranges::count(parts, part) == 0) {
        parts.push_back(part);
      }
    }
  };
  std::ranges::for_each(read_deepspeed_keys(), add);
  std::ranges::for_each(ignored_deepspeed_keys(), add);
  for (const UnmodelledDeepSpeedKey& key : unmodelled_deepspeed_keys()) {
    add(key.name);
  }
  return parts;
}

// The first part of the path that does not exist is the one that is misspelt, or its group is
// missing: `stage` is a key of `zero_optimization`.
std::string remedy_for_key(std::string_view key) {
  size_t begin = 0;
  Names parts = parts_behind("");
  while (std::ranges::count(parts, part_at(key, begin)) != 0 && begin < key.size()) {
    begin += part_at(key, begin).size() + 1;
    parts = parts_behind(key.substr(0, std::min(begin, key.size())));
  }
  if (begin >= key.size()) {
    return "";
  }
  const std::string_view wrong = part_at(key, begin);
  if (const std::string near = nearest_spelling(wrong, parts); !near.empty()) {
    return fmt::format("did you mean `{}{}`?", key.substr(0, begin), near);
  }
  for (const Names& names : {read_deepspeed_keys(), ignored_deepspeed_keys()}) {
    const auto found = std::ranges::find_if(
        names, [&](std::string_view name) { return name.ends_with(fmt::format(".{}", key)); });
    if (found != names.end()) {
      return fmt::format("did you mean `{}`?", *found);
    }
  }
  constexpr size_t shown = 8;
  return begin == 0 || parts.size() > shown
             ? ""
             : fmt::format("`{}` holds {}", key.substr(0, begin - 1), fmt::join(parts, ", "));
}

// Of a class, which checks it.
bool is_parameter(std::string_view key) {
  return is_or_is_below(key, "optimizer.params") || is_or_is_below(key, "scheduler.params");
}

// `zero_optimization: true` is stage 1 (read_zero_config_deprecated).
bool is_former_zero(std::string_view key, const StrategyArguments::Value& value) {
  return key == "zero_optimization" && std::holds_alternative<bool>(value);
}

// DeepSpeedZeroConfig takes a field by either name and forbids what is left over; "auto" is dropped
// before (runtime/config_utils.py).
void check_names_of_field(const StrategyArguments& arguments, const std::string& given,
                          const std::string& of_today) {
  const auto counts = [&arguments](const std::string& key) {
    const StrategyArguments::Value* value = arguments.find("config." + key);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    return value != nullptr && (text == nullptr || *text != "auto");
  };
  if (given != of_today && counts(given) && counts(of_today)) {
    throw RefusedArgument(
        fmt::format("ValidationError: DeepSpeedZeroConfig: Extra inputs are not permitted: `{}` "
                    "and `{}` are names of one field",
                    given, of_today),
        "config." + given, "leave one of them out");
  }
}

}  // namespace

StrategyArguments with_keys_of_today(const StrategyArguments& arguments) {
  const std::string prefix = "config.";
  StrategyArguments renamed = arguments;
  for (const auto& [name, value] : arguments.all()) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    const std::string key = name.substr(prefix.size());
    if (const OtherName* other = find_name(other_names, key)) {
      renamed.set(prefix + std::string(other->of_today), value);
    } else if (const OtherName* switched = find_name(former_switches, key)) {
      if (arguments.boolean(name, false)) {
        renamed.set(prefix + std::string(switched->of_today), std::string("cpu"));
      }
    } else if (is_former_zero(key, value)) {
      renamed.set(name + ".stage", int64_t{arguments.boolean(name, false)});
    }
  }
  return renamed;
}

void check_deepspeed_keys(const StrategyArguments& arguments) {
  const std::string prefix = "config.";
  for (const auto& [name, value] : arguments.all()) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    const std::string key(key_of_today(name.substr(prefix.size())));
    check_names_of_field(arguments, name.substr(prefix.size()), key);
    if (find_name(former_switches, key) != nullptr || is_former_zero(key, value)) {
      continue;
    }
    if (key == "gradient_accumulation_steps") {
      // _format_batch_size_and_grad_accum_config of lightning/pytorch/strategies/deepspeed.py.
      throw RefusedArgument(
          "`gradient_accumulation_steps` must not be in a DeepSpeed configuration: Lightning sets "
          "them itself",
          name, "write trainer.accumulate_grad_batches in their place");
    }
    const bool is_known = std::ranges::count(read_deepspeed_keys(), key) != 0;
    if (is_group(key) && is_empty_map(value)) {
      continue;
    }
    if (is_group(key)) {
      throw ArgumentProblem(
          fmt::format(
              "`{0}` of a DeepSpeed configuration holds keys of its own, as in {{\"{0}\": {{..}}}}",
              key),
          name);
    }
    const auto unmodelled = std::ranges::find_if(
        unmodelled_deepspeed_keys(),
        [&key](const UnmodelledDeepSpeedKey& known) { return is_or_is_below(key, known.name); });
    if (unmodelled != unmodelled_deepspeed_keys().end() && !is_known) {
      if (!is_off(*unmodelled, arguments, value)) {
        throw UnmodelledArgument(
            fmt::format("`{}` of a DeepSpeed configuration is not modelled{}{}", key,
                        unmodelled->instead.empty() ? "" : ": ", unmodelled->instead),
            name);
      }
    } else if (!is_known && !is_among(ignored_deepspeed_keys(), key) && !is_parameter(key)) {
      throw ArgumentProblem(fmt::format("DeepSpeed has no configuration key `{}`", key), name,
                            remedy_for_key(key), ArgumentProblem::Part::name);
    }
  }
}

}  // namespace lockstep
