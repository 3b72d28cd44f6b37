#pragma once

#include <cstdint>
#include <optional>

#include "model/core/dtype.hpp"
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

  // Stage 3.
  int64_t prefetch_bucket_size = 50'000'000;
  int64_t param_persistence_threshold = 100'000;
  int64_t max_live_parameters = 1'000'000'000;
  int64_t max_reuse_distance = 1'000'000'000;

  bool offloads_optimizer = false;
  bool offloads_parameters = false;

  LossScaler::Options loss_scale;
  double gradient_clipping = 0;  ///< of the configuration; 0: what the Trainer asks for

  GradientClipping configured_clipping() const {
    return gradient_clipping > 0
               ? GradientClipping{GradientClipping::Algorithm::norm, gradient_clipping}
               : GradientClipping{};
  }
  /// `asked`, or where it asks for none what the configuration says.
  UpdateOptions with_clipping(const UpdateOptions& asked) const {
    UpdateOptions options = asked;
    if (asked.clipping.algorithm == GradientClipping::Algorithm::none) {
      options.clipping = configured_clipping();
    }
    return options;
  }
};

}  // namespace lockstep
