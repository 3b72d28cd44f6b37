// Of which ranks FSDPStrategy's groups are: `device_mesh`, or the older `process_group`.
#include "model/strategy/sharded/fsdp/fsdp_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"

namespace lockstep {

namespace {

constexpr const char* device_mesh = "device_mesh";
constexpr const char* process_group = "process_group";

// 0: no number of ranks.
std::vector<int64_t> sizes_of_groups(const StrategyArguments& arguments) {
  std::vector<int64_t> sizes;
  for (const std::string& size : arguments.texts(process_group)) {
    int64_t value = 0;
    const char* const end = size.data() + size.size();
    const auto read = std::from_chars(size.data(), end, value);
    const bool is_count = read.ec == std::errc() && read.ptr == end && value > 0 &&
                          value <= std::numeric_limits<int32_t>::max();
    sizes.push_back(is_count ? value : 0);
  }
  return sizes;
}

// The tuple (group that shards, group that replicates) by their sizes.
void set_groups(const TrainingPlan& plan, const StrategyArguments& arguments,
                FullyShardedOptions& options) {
  if (!arguments.has(process_group)) {
    return;
  }
  if (arguments.has(device_mesh)) {
    throw RefusedArgument(
        "ValueError: Cannot pass both process_group and device_mesh at the same time. Please just "
        "pass only one of them.",
        process_group, "leave one of them out");
  }
  const std::vector<int64_t> sizes = sizes_of_groups(arguments);
  const bool is_one = sizes.size() == 1;
  if (options.is_hybrid() && is_one) {
    throw RefusedArgument(
        "ValueError: Expected process_group to be passed in as either None or "
        "Tuple[dist.ProcessGroup, dist.ProcessGroup]",
        process_group, "write [shards, replicas]");
  }
  if (options.is_hybrid()) {
    if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1 ||
        (plan.world_size > 0 && sizes[0] * sizes[1] != plan.world_size)) {
      throw ArgumentProblem(
          fmt::format("process_group is [shards, replicas], whose product is the number of ranks, "
                      "{}",
                      plan.world_size),
          process_group, "write two whole numbers, as in [shards, replicas]");
    }
    options.shard_ranks = static_cast<int32_t>(sizes[0]);
    return;
  }
  if (!is_one || (plan.world_size > 0 && sizes.front() != plan.world_size)) {
    throw UnmodelledArgument(
        "`process_group` of FSDPStrategy without HYBRID_SHARD is modelled for the group of all "
        "ranks alone",
        process_group, fmt::format("write [{}]", plan.world_size));
  }
}

// _init_process_group_state of torch/distributed/fsdp/_init_utils.py.
void set_mesh(const TrainingPlan& plan, const StrategyArguments& arguments,
              FullyShardedOptions& options) {
  if (!arguments.has(device_mesh)) {
    return;
  }
  const std::vector<std::string> sizes = arguments.texts(device_mesh);
  if (options.is_hybrid() && sizes.size() == 1) {
    throw RefusedArgument("ValueError: Expected device_mesh to have ndim=2 but got 1", device_mesh,
                          "write [replicas, shards]");
  }
  if (options.is_hybrid()) {
    options.shard_ranks = mesh_argument(plan.world_size, arguments, device_mesh).shards;
    return;
  }
  if (sizes.size() != 1) {
    throw ArgumentProblem(
        "device_mesh of FSDPStrategy has two dimensions, which only the sharding strategies "
        "HYBRID_SHARD and _HYBRID_SHARD_ZERO2 take",
        "sharding_strategy");
  }
  // One dimension of all ranks is the default group.
  if (plan.world_size > 0 && sizes.front() != std::to_string(plan.world_size)) {
    throw ArgumentProblem(
        fmt::format("device_mesh has one dimension, of all {} ranks or none", plan.world_size),
        device_mesh, fmt::format("write [{}]", plan.world_size));
  }
}

}  // namespace

void set_fsdp_groups(const TrainingPlan& plan, const StrategyArguments& arguments,
                     FullyShardedOptions& options) {
  set_mesh(plan, arguments, options);
  set_groups(plan, arguments, options);
}

ArgumentsOfSize fsdp_arguments_of_size(const StrategyArguments& arguments, int64_t ranks) {
  ArgumentsOfSize changed;
  if (arguments.has(device_mesh)) {
    const bool is_flat = arguments.texts(device_mesh).size() == 1;
    changed.values.emplace_back(device_mesh, is_flat ? fmt::format("[{}]", ranks)
                                                     : mesh_of_size(arguments, device_mesh, ranks));
    if (changed.values.back().second.empty()) {
      changed.why_not = fmt::format("the shards of device_mesh do not divide {}", ranks);
    }
  }
  if (arguments.has(process_group)) {
    const std::vector<int64_t> sizes = sizes_of_groups(arguments);
    const int64_t shards = std::max<int64_t>(sizes.empty() ? 1 : sizes.front(), 1);
    changed.values.emplace_back(
        process_group, sizes.size() == 1 ? fmt::format("[{}]", ranks)
                                         : fmt::format("[{}, {}]", shards, ranks / shards));
    if (sizes.size() > 1 && ranks % shards != 0) {
      changed.why_not = fmt::format("the shards of process_group do not divide {}", ranks);
    }
  }
  return changed;
}

}  // namespace lockstep
