#pragma once

#include <cstdint>
#include <optional>

#include "model/network/tensor_parallel/cut_network.hpp"
#include "model/strategy/arguments.hpp"

namespace lockstep {

/// Lightning's data_parallel_size and tensor_parallel_size.
struct MeshSizes {
  int32_t data = 1;    ///< replicas
  int32_t tensor = 1;  ///< ranks that compute each of them together
};
/// `auto`, the default of both, is the number of nodes, and the ranks of a node. Throws
/// RefusedArgument where they do not multiply to the ranks (ModelParallelStrategy,
/// _setup_device_mesh).
MeshSizes mesh_sizes(const StrategyArguments& arguments, int32_t world_size, int32_t node_ranks);

/// What configure_model calls parallelize_module with: a style for each name of a module. Throws
/// ArgumentProblem for a style that is none.
ParallelPlan parallel_plan_of(const StrategyArguments& arguments);
inline constexpr const char* parallelize_plan = "parallelize_plan";

/// What each of so many ranks has of the network by the plan; `auto` stands for automatic_plan().
/// Nothing: there is no plan, or one that is refused where the strategy is made.
std::optional<CutNetwork> cut_by_plan(const Network& whole, const StrategyArguments& arguments,
                                      int32_t tensor_ranks);

}  // namespace lockstep
