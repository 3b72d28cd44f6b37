#include "model/strategy/tensor/tensor_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "model/core/nearest_sizes.hpp"
#include "model/network/tensor_parallel/automatic_plan.hpp"

namespace lockstep {

namespace {

constexpr const char* data_size_name = "data_parallel_size";
constexpr const char* tensor_size_name = "tensor_parallel_size";

bool is_automatic(const StrategyArguments& arguments, const char* name) {
  const StrategyArguments::Value* value = arguments.find(name);
  return value == nullptr || std::holds_alternative<std::string>(*value);
}

int64_t size_of(const StrategyArguments& arguments, const char* name, int64_t automatic) {
  const StrategyArguments::Value* value = arguments.find(name);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (text != nullptr && *text != "auto") {
    throw ArgumentProblem(fmt::format("{} is a number or auto, not `{}`", name, *text), name);
  }
  const int64_t size = text != nullptr ? automatic : arguments.integer(name, automatic);
  if (size < 1) {
    throw ArgumentProblem(fmt::format("{} is {}", name, size), name, "write 1 or more, or auto");
  }
  return size;
}

bool is_automatic_plan(const StrategyArguments& arguments) {
  const StrategyArguments::Value* value = arguments.find(parallelize_plan);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text != nullptr && *text == "auto";
}

/// The argument to change, and what to write: a size that is given keeps its value where it divides
/// the ranks, so that the other follows from it.
std::pair<const char*, std::string> remedy_of_sizes(const StrategyArguments& arguments,
                                                    std::pair<int64_t, int64_t> sizes,
                                                    int64_t ranks) {
  const auto [data, tensor] = sizes;
  const bool data_is_given = !is_automatic(arguments, data_size_name);
  const bool tensor_is_given = !is_automatic(arguments, tensor_size_name);
  if (data_is_given && !tensor_is_given && ranks % data == 0) {
    return {data_size_name, fmt::format("write {}: {} beside it", tensor_size_name, ranks / data)};
  }
  if (tensor_is_given && ranks % tensor == 0) {
    return {data_is_given ? data_size_name : tensor_size_name,
            fmt::format("write {}: {}", data_size_name, ranks / tensor)};
  }
  return {tensor_is_given ? tensor_size_name : data_size_name,
          fmt::format("choose sizes whose product is {}: {}, for example, can be {}", ranks,
                      tensor_is_given ? tensor_size_name : data_size_name,
                      divisors_of(ranks, tensor_is_given ? tensor : data))};
}

}  // namespace

MeshSizes mesh_sizes(const StrategyArguments& arguments, int32_t world_size, int32_t node_ranks) {
  const int64_t in_node = std::clamp(node_ranks, 1, std::max(1, world_size));
  const int64_t tensor = size_of(arguments, tensor_size_name, in_node);
  const int64_t data = size_of(arguments, data_size_name, world_size / in_node);
  if (data * tensor != world_size) {
    const bool automatic =
        is_automatic(arguments, data_size_name) || is_automatic(arguments, tensor_size_name);
    const auto [argument, remedy] = remedy_of_sizes(arguments, {data, tensor}, world_size);
    throw RefusedArgument(
        fmt::format("RuntimeError: data_parallel_size={} and tensor_parallel_size={} multiplied "
                    "should equal the world size, {}{}",
                    data, tensor, world_size,
                    automatic ? "; `auto` is the number of nodes, and the ranks of a node" : ""),
        argument, remedy);
  }
  return {static_cast<int32_t>(data), static_cast<int32_t>(tensor)};
}

ParallelPlan parallel_plan_of(const StrategyArguments& arguments) {
  ParallelPlan plan;
  if (arguments.has(parallelize_plan) && !is_automatic_plan(arguments)) {
    throw ArgumentProblem("parallelize_plan is a map: a style for each name of a module",
                          parallelize_plan, "write {NAME: ColwiseParallel()}, or auto");
  }
  const std::string prefix = std::string(parallelize_plan) + ".";
  for (const auto& [name, value] : arguments.all()) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    const auto* text = std::get_if<std::string>(&value);
    const ReadStyle read =
        read_parallel_style(text == nullptr ? std::string_view() : std::string_view(*text));
    if (read.is_unmodelled) {
      throw UnmodelledArgument(read.why_not, name);
    }
    if (!read.style) {
      throw ArgumentProblem(
          read.why_not, name,
          "write ColwiseParallel(), RowwiseParallel(), SequenceParallel(), ExpertParallel() or "
          "PrepareModuleInput(..) with their arguments, or colwise, rowwise, sequence or expert");
    }
    plan.emplace_back(name.substr(prefix.size()), *read.style);
  }
  return plan;
}

std::optional<CutNetwork> cut_by_plan(const Network& whole, const StrategyArguments& arguments,
                                      int32_t tensor_ranks) {
  ParallelPlan plan;
  try {
    plan = parallel_plan_of(arguments);
  } catch (const ArgumentProblem&) {
    return std::nullopt;
  }
  if (!is_automatic_plan(arguments)) {
    return plan.empty() ? std::nullopt : std::optional(cut_network(whole, plan, tensor_ranks));
  }
  plan = automatic_plan(whole, tensor_ranks);
  if (!plan.empty()) {
    return cut_network(whole, plan, tensor_ranks);
  }
  CutNetwork none;
  none.where = parallelize_plan;
  none.why_not =
      fmt::format("`auto` finds no module of the network that {} ranks can divide", tensor_ranks);
  none.remedy = "name the modules and their styles, or choose a smaller tensor_parallel_size";
  none.is_unmodelled = true;
  return none;
}

}  // namespace lockstep
