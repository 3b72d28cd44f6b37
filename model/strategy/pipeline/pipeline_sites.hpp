#pragma once

#include <string_view>

namespace lockstep::pipeline_sites {

// What its operations are called in findings.
inline constexpr std::string_view make_groups = "pipeline: process groups of the mesh";
inline constexpr std::string_view meet_neighbours = "pipeline: first messages between neighbours";
inline constexpr std::string_view send_shapes = "pipeline: shapes of activations";
inline constexpr std::string_view exchange = "pipeline: activations and gradients";
inline constexpr std::string_view wait = "pipeline: wait for messages";
inline constexpr std::string_view forward = "pipeline: forward of a micro-batch";
inline constexpr std::string_view backward = "pipeline: backward of a micro-batch";
inline constexpr std::string_view input_gradient = "pipeline: input gradient of a micro-batch";
inline constexpr std::string_view weight_gradient = "pipeline: weight gradient of a micro-batch";
inline constexpr std::string_view average_loss = "pipeline: mean loss of the micro-batches";
inline constexpr std::string_view send_loss = "pipeline: broadcast of the loss";
inline constexpr std::string_view scale_gradients = "pipeline: gradients by micro-batches";
inline constexpr std::string_view tie_gradients =
    "pipeline: all_reduce of a shared weight's gradient";
inline constexpr std::string_view share_norm = "pipeline: all_reduce of the gradient norm";
inline constexpr std::string_view update = "pipeline: optimizer step";
// Not where the trainer steps: of an earlier batch, that has come back.
inline constexpr std::string_view update_of_stage = "pipeline: optimizer step of a stage";
inline constexpr std::string_view stash_weights = "pipeline: copy of the weights for an update";

inline constexpr std::string_view every_step[] = {
    make_groups,   meet_neighbours, send_shapes,     exchange,        wait,         forward,
    backward,      input_gradient,  weight_gradient, average_loss,    send_loss,    scale_gradients,
    tie_gradients, share_norm,      update,          update_of_stage, stash_weights};

}  // namespace lockstep::pipeline_sites
