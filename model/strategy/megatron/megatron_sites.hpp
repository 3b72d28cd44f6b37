#pragma once

#include <string_view>

namespace lockstep::megatron_sites {

// What its operations are called in findings.
inline constexpr std::string_view make_groups = "Megatron: initialize_model_parallel";
inline constexpr std::string_view zero_gradients = "Megatron: zero_grad_buffer";
inline constexpr std::string_view reduce_gradients = "Megatron: gradients over the replicas";
inline constexpr std::string_view reduce_norms =
    "Megatron: all_reduce of gradients of which each tensor rank has a term";
inline constexpr std::string_view gather_parameters = "Megatron: all_gather of updated parameters";
inline constexpr std::string_view average_loss = "Megatron: loss over the replicas";
inline constexpr std::string_view share_norm = "Megatron: all_reduce of the gradient norm";
inline constexpr std::string_view update = "Megatron: optimizer step";

inline constexpr std::string_view every_step[] = {
    make_groups,       zero_gradients, reduce_gradients, reduce_norms,
    gather_parameters, average_loss,   share_norm,       update};

}  // namespace lockstep::megatron_sites
