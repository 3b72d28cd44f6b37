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
inline constexpr std::string_view reduce_partial =
    "tensor parallel: all_reduce of a gradient of which each rank has a term";
inline constexpr std::string_view share_norm =
    "tensor parallel: all_reduce of the gradients' norms";
inline constexpr std::string_view update = "tensor parallel: optimizer step";
inline constexpr std::string_view gather_state =
    "tensor parallel: all_gather of a parameter for the state_dict";

inline constexpr std::string_view every_step[] = {
    make_groups, distribute, forward, backward, reduce_partial, share_norm, update, gather_state};

}  // namespace lockstep::tensor_sites
