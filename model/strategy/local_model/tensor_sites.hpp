#pragma once

#include <string_view>

namespace lockstep::tensor_sites {

// What the operations of tensor parallelism are called in findings.
inline constexpr std::string_view make_groups = "tensor parallel: new_group of a device mesh";
inline constexpr std::string_view distribute =
    "tensor parallel: parallelize_module distributes a parameter";
inline constexpr std::string_view forward = "tensor parallel: exchange of an activation";
inline constexpr std::string_view backward =
    "tensor parallel: exchange of an activation's gradient";
inline constexpr std::string_view loss = "tensor parallel: all_reduce for a cross entropy";
inline constexpr std::string_view reduce_partial =
    "tensor parallel: all_reduce of a gradient of which each rank has a term";
inline constexpr std::string_view share_norm =
    "tensor parallel: all_reduce of the gradients' norms";
inline constexpr std::string_view share_update_norm =
    "tensor parallel: all_reduce of a norm that the optimizer takes";
inline constexpr std::string_view announce =
    "expert parallel: all_to_all of how many tokens each expert gets";
inline constexpr std::string_view dispatch = "expert parallel: all_to_all of tokens to experts";
inline constexpr std::string_view combine = "expert parallel: all_to_all of tokens back";
inline constexpr std::string_view dispatch_gradient =
    "expert parallel: all_to_all of gradients to experts";
inline constexpr std::string_view combine_gradient =
    "expert parallel: all_to_all of gradients back";
inline constexpr std::string_view update = "tensor parallel: optimizer step";
inline constexpr std::string_view gather_state =
    "tensor parallel: all_gather of a parameter for the state_dict";

inline constexpr std::string_view every_step[] = {
    make_groups,       distribute,       forward,           backward, loss,
    reduce_partial,    announce,         dispatch,          combine,  share_norm,
    dispatch_gradient, combine_gradient, share_update_norm, update,   gather_state};

}  // namespace lockstep::tensor_sites
