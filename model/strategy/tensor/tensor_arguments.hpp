#pragma once

#include <cstdint>

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

}  // namespace lockstep
