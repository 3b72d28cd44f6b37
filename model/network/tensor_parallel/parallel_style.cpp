#include "model/network/tensor_parallel/parallel_style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/core/spelling.hpp"

namespace lockstep {

namespace {

using Kind = ParallelStyle::Kind;

struct StyleClass {
  std::string_view name;
  std::string_view short_name;
  ParallelStyle style;
};
// torch/distributed/tensor/parallel/style.py, with the defaults of its constructors.
constexpr StyleClass style_classes[] = {
    {"ColwiseParallel",
     "colwise",
     {Kind::column, TensorLayout::replicated, TensorLayout::features}},
    {"RowwiseParallel", "rowwise", {Kind::row, TensorLayout::features, TensorLayout::replicated}},
    {"SequenceParallel",
     "sequence",
     {Kind::sequence, TensorLayout::sequence, TensorLayout::sequence, false}},
    {"PrepareModuleInput",
     "",
     {Kind::input, TensorLayout::replicated, TensorLayout::replicated, false}},
    // torchtitan/distributed/expert_parallel.py
    {"ExpertParallel",
     "expert",
     {Kind::experts, TensorLayout::replicated, TensorLayout::replicated}},
};
constexpr std::string_view unmodelled_classes[] = {
    "PrepareModuleOutput", "PrepareModuleInputOutput", "TensorParallel", "ExpertTensorParallel"};

std::string without_spaces(std::string_view text) {
  std::string kept(text);
  std::erase_if(kept, [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
  return kept;
}

std::optional<TensorLayout> layout_named(std::string text) {
  // A tuple is for modules of several inputs, of which those beside the first are no tensors.
  if (text.starts_with('(')) {
    text = text.substr(
        1, text.find(',') == std::string::npos ? std::string::npos : text.find(',') - 1);
  }
  if (text == "Replicate()") {
    return TensorLayout::replicated;
  }
  if (text == "Shard(1)") {
    return TensorLayout::sequence;
  }
  if (text == "Shard(-1)" || text == "Shard(2)") {
    return TensorLayout::features;
  }
  return std::nullopt;
}

ReadStyle unreadable(std::string why_not, bool is_unmodelled = false) {
  return {std::nullopt, std::move(why_not), is_unmodelled};
}

/// `a=1,b=(c,d)` at the commas outside of brackets.
std::vector<std::string> arguments_in(std::string_view text) {
  std::vector<std::string> found;
  int depth = 0;
  for (const char c : text) {
    if (found.empty()) {
      found.emplace_back();
    }
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      found.emplace_back();
    } else {
      found.back().push_back(c);
    }
  }
  return found;
}

bool is_torch_value(std::string_view text) { return text == "True" || text == "False"; }

std::string set_argument(const StyleClass& of, const std::string& argument, ParallelStyle& style) {
  const size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
  const bool is_input = style.kind == Kind::input;
  if (name == "use_local_output" && is_torch_value(value)) {
    style.local_output = value == "True";
    return "";
  }
  if (name == "sequence_dim" && style.kind == Kind::sequence) {
    return value == "1" ? "" : "sequence_dim is modelled as 1 alone";
  }
  TensorLayout* const field = name == "input_layouts" ? &style.input
                              : name == (is_input ? "desired_input_layouts" : "output_layouts")
                                  ? &style.output
                                  : nullptr;
  if (field == nullptr || style.kind == Kind::sequence || style.kind == Kind::experts) {
    return fmt::format("{} has no argument `{}`", of.name, name);
  }
  const std::optional<TensorLayout> layout = layout_named(value);
  if (!layout) {
    return fmt::format("{} takes Replicate(), Shard(1) or Shard(-1), not `{}`", name, value);
  }
  *field = *layout;
  return "";
}

}  // namespace

std::string_view name_of(TensorLayout layout) {
  switch (layout) {
    case TensorLayout::replicated: return "Replicate()";
    case TensorLayout::sequence: return "Shard(1)";
    case TensorLayout::features: return "Shard(-1)";
  }
  return "?";
}

ReadStyle read_parallel_style(std::string_view given) {
  const std::string text = without_spaces(given);
  const size_t bracket = text.find('(');
  const std::string name = text.substr(0, bracket);
  for (const std::string_view other : unmodelled_classes) {
    if (name == other) {
      return unreadable(fmt::format("{} is not modelled", other), true);
    }
  }
  for (const StyleClass& each : style_classes) {
    if (name != each.name && (each.short_name.empty() || name != each.short_name)) {
      continue;
    }
    ParallelStyle style = each.style;
    if (bracket != std::string::npos && !text.ends_with(')')) {
      return unreadable(fmt::format("`{}` has no closing bracket", text));
    }
    const std::string inside =
        bracket == std::string::npos ? "" : text.substr(bracket + 1, text.size() - bracket - 2);
    for (const std::string& argument : arguments_in(inside)) {
      if (const std::string why_not = set_argument(each, argument, style); !why_not.empty()) {
        return unreadable(why_not);
      }
    }
    return {style, "", false};
  }
  const std::string near = did_you_mean(
      name, {"ColwiseParallel", "RowwiseParallel", "SequenceParallel", "PrepareModuleInput",
             "ExpertParallel", "colwise", "rowwise", "sequence", "expert"});
  return unreadable(fmt::format("unknown style `{}`{}{}", name, near.empty() ? "" : "; ", near));
}

namespace {

/// `*` stands for any characters, `?` for one.
bool fits_level(std::string_view pattern, std::string_view level) {
  if (pattern.empty()) {
    return level.empty();
  }
  if (pattern.front() == '*') {
    return fits_level(pattern.substr(1), level) ||
           (!level.empty() && fits_level(pattern, level.substr(1)));
  }
  return !level.empty() && (pattern.front() == '?' || pattern.front() == level.front()) &&
         fits_level(pattern.substr(1), level.substr(1));
}

}  // namespace

bool fits_pattern(std::string_view pattern, std::string_view module) {
  while (true) {
    const size_t of_pattern = pattern.find('.');
    const size_t of_module = module.find('.');
    if (!fits_level(pattern.substr(0, of_pattern), module.substr(0, of_module)) ||
        (of_pattern == std::string_view::npos) != (of_module == std::string_view::npos)) {
      return false;
    }
    if (of_pattern == std::string_view::npos) {
      return true;
    }
    pattern.remove_prefix(of_pattern + 1);
    module.remove_prefix(of_module + 1);
  }
}

}  // namespace lockstep
