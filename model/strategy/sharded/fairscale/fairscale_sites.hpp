#pragma once

#include <string_view>

namespace lockstep::fairscale_sites {

// What its operations are called in findings.
inline constexpr std::string_view send_states = "ddp_sharded: broadcast of model states";
inline constexpr std::string_view send_buffers = "ddp_sharded: broadcast of buffers";
inline constexpr std::string_view fill_bucket = "ddp_sharded: empty a bucket";
inline constexpr std::string_view scale_gradient = "ddp_sharded: divide a gradient";
inline constexpr std::string_view reduce_gradient =
    "ddp_sharded: reduce of a gradient to its owner";
inline constexpr std::string_view reduce_bucket = "ddp_sharded: reduce of a bucket to its owner";
inline constexpr std::string_view wait_for_reductions =
    "ddp_sharded: gradients are at their owners";
inline constexpr std::string_view share_norm = "ddp_sharded: all_reduce of the gradients' norm";
inline constexpr std::string_view update = "ddp_sharded: optimizer step";
inline constexpr std::string_view send_parameters = "ddp_sharded: broadcast of updated parameters";
inline constexpr std::string_view send_optimizer =
    "ddp_sharded: broadcast of an optimizer state (consolidate_state_dict)";

inline constexpr std::string_view every_step[] = {
    send_states,         send_buffers, fill_bucket, scale_gradient,  reduce_gradient, reduce_bucket,
    wait_for_reductions, share_norm,   update,      send_parameters, send_optimizer};

}  // namespace lockstep::fairscale_sites
