#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "model/core/dtype.hpp"
#include "model/strategy/sharded/deepspeed/drive_options.hpp"
#include "model/strategy/sharded/deepspeed/engine_division.hpp"
#include "model/strategy/sharded/deepspeed/loss_scaler.hpp"
#include "model/strategy/update_options.hpp"

namespace lockstep {

/// What DeepSpeed is configured with (deepspeed/runtime/zero/config.py), with Lightning's defaults
/// where DeepSpeedStrategy has its own. Sizes are in elements, not bytes.
struct DeepSpeedOptions {
  int64_t stage = 2;
  bool contiguous_gradients = true;
  bool overlap_comm = true;
  bool reduce_scatter = true;
  bool use_multi_rank_bucket_allreduce = true;
  bool round_robin_gradients = false;
  int64_t reduce_bucket_size = 200'000'000;
  int64_t sub_group_size = 1'000'000'000'000;
  std::optional<DType> communication_data_type;
  EngineDivision division;

  // Stage 3.
  int64_t prefetch_bucket_size = 50'000'000;
  int64_t param_persistence_threshold = 100'000;
  int64_t model_persistence_threshold = std::numeric_limits<int64_t>::max();
  int64_t max_live_parameters = 1'000'000'000;
  int64_t max_reuse_distance = 1'000'000'000;

  /// ZeRO++, hpZ: ranks that gather among themselves what was gathered before in a step.
  int64_t second_partition_ranks = 1;

  /// False: a step with an offloaded optimizer asks for a gradient of every parameter.
  bool ignores_unused = true;
  bool offloads_optimizer = false;
  bool offloads_parameters = false;
  DriveOptions drive;  ///< of what is offloaded further

  bool compares_tags = true;  ///< of checkpoints, among all ranks
  bool saves_frozen = true;   ///< not `exclude_frozen_parameters` of save_checkpoint

  /// Of stages 1 and 2 in bf16: whether ranks agree that gradients are finite. None: as the
  /// release does.
  std::optional<bool> checks_bf16;
  LossScaler::Options loss_scale;
  /// `gradient_clipping` of the configuration, where it has one: Lightning fills in the Trainer's
  /// only where it has none. A norm, or an algorithm `none` for 0.
  std::optional<GradientClipping> clipping;
  UpdateOptions with_clipping(UpdateOptions asked) const {
    asked.clipping = clipping.value_or(asked.clipping);
    return asked;
  }
};

}  // namespace lockstep
