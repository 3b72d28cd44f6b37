#pragma once

#include <string_view>

namespace lockstep::replica_sites {

// What the work of a replica is called in findings, under every strategy.
inline constexpr std::string_view bring_batch = "batch to device";
inline constexpr std::string_view layer_forward = "forward of a layer";
inline constexpr std::string_view recompute = "recomputed forward of a layer";
inline constexpr std::string_view loss_forward = "forward of the loss";
inline constexpr std::string_view loss_backward = "backward of the loss";
inline constexpr std::string_view gather_views = "NTXentLoss: all_gather of the views of a batch";
inline constexpr std::string_view reduce_views =
    "NTXentLoss: all_reduce of the gradients of gathered views";
inline constexpr std::string_view layer_backward = "backward of a layer";
inline constexpr std::string_view zero_gradients = "zero_grad";
inline constexpr std::string_view clip_gradients = "gradient clipping";
inline constexpr std::string_view unscale_gradients = "loss scaler: gradients are unscaled";
inline constexpr std::string_view share_overflow = "loss scaler: all_reduce of found_inf";
inline constexpr std::string_view find_overflow = "loss scaler: the host reads found_inf";

inline constexpr std::string_view all[] = {
    bring_batch,    layer_forward,  recompute,      loss_forward,      loss_backward,
    layer_backward, zero_gradients, clip_gradients, unscale_gradients, share_overflow,
    find_overflow,  gather_views,   reduce_views};

}  // namespace lockstep::replica_sites
