#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/core/dtype.hpp"
#include "model/strategy/arguments.hpp"
#include "model/strategy/layout/wrap_policy.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// Arguments of torch's fully_shard, called on every wrapped module and at last on the model.
struct FullyShard2Options {
  /// None: every module but the outermost one frees its parameters after its forward.
  std::optional<bool> reshard_after_forward;
  /// Then: so many neighbouring ranks keep the parameters of their group together; 0: not.
  int32_t reshard_to = 0;
  std::optional<DType> param_dtype;   ///< of MixedPrecisionPolicy; none: as stored
  std::optional<DType> reduce_dtype;  ///< none: param_dtype
  bool casts_input = true;            ///< of each module, to param_dtype
  bool widens_output = false;         ///< of each module, to fp32
  /// Ranks of the mesh's second dimension, over which parameters are sharded; 0: all. The first
  /// dimension replicates.
  int32_t shard_ranks = 0;
  /// Neighbouring ranks that compute the layers of each replica together.
  int32_t tensor_ranks = 1;
  bool offload = false;        ///< CPUOffloadPolicy
  bool saves_in_parts = true;  ///< ModelParallelStrategy's save_distributed_checkpoint
  WrapPolicy wrap;
};

/// Who takes the map `fully_shard` among its arguments.
struct FullyShardCaller {
  std::string_view class_name;        ///< of the strategy
  int32_t replicas = 0;               ///< ranks with the same layers; 0: nobody knows yet
  int32_t tensor_ranks = 1;           ///< that compute the layers of each replica together
  bool meshes_beside_tensor = false;  ///< whether it has a mesh of two dimensions beside these
};

inline constexpr const char* fully_shard_mesh = "fully_shard.mesh";
inline constexpr const char* fully_shard_modules = "fully_shard.modules";
inline constexpr const char* fully_shard_pin_memory =
    "fully_shard.offload_policy.CPUOffloadPolicy.pin_memory";
/// Whether what is offloaded lies in host memory that is not pinned.
bool copies_unpinned(const StrategyArguments& arguments);
/// Whether the map is there.
bool is_fully_sharded(const StrategyArguments& arguments);
/// The arguments `fully_shard.*`. Throws ArgumentProblem for what cannot be.
FullyShard2Options fully_shard_options(const TrainingPlan& plan, const StrategyArguments& arguments,
                                       const FullyShardCaller& caller);

}  // namespace lockstep
