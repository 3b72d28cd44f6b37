#pragma once

#include <string_view>

namespace lockstep::deepspeed_sites {

// What its operations are called in findings.
inline constexpr std::string_view send_states = "deepspeed: broadcast of a parameter";
inline constexpr std::string_view start_barrier = "deepspeed: barrier of the engine's start";
inline constexpr std::string_view fill_bucket = "deepspeed: gradients into a bucket";
inline constexpr std::string_view reduce_bucket_site = "deepspeed: reduction of a gradient bucket";
inline constexpr std::string_view take_partition = "deepspeed: the own partition of gradients";
inline constexpr std::string_view scale_loss = "deepspeed: the scale of the loss";
inline constexpr std::string_view share_norm = "deepspeed: all_reduce of the gradients' norm";
inline constexpr std::string_view share_overflow = "deepspeed: all_reduce of the overflow flag";
inline constexpr std::string_view update = "deepspeed: optimizer step";
inline constexpr std::string_view gather_parameters = "deepspeed: all_gather of updated parameters";
inline constexpr std::string_view fetch = "deepspeed: all_gather of a module's parameters";
inline constexpr std::string_view wait_for_parameters =
    "deepspeed: a module's parameters are there";
inline constexpr std::string_view check_trace = "deepspeed: broadcast of the module trace";
inline constexpr std::string_view offload = "deepspeed: copy between device and host";
inline constexpr std::string_view read_parameters = "deepspeed: parameters from the drive";
inline constexpr std::string_view make_groups = "deepspeed: groups of neighbours";
inline constexpr std::string_view keep_second_part = "deepspeed: a second part of a parameter";
inline constexpr std::string_view gather_state = "deepspeed: all_gather for a checkpoint";

inline constexpr std::string_view every_step[] = {
    send_states,       start_barrier,   fill_bucket,    reduce_bucket_site,
    take_partition,    share_norm,      share_overflow, update,
    gather_parameters, scale_loss,      fetch,          wait_for_parameters,
    check_trace,       offload,         gather_state,   read_parameters,
    make_groups,       keep_second_part};

/// A mark in the journal.
inline constexpr std::string_view gradients_reduced = "gradients_reduced";

}  // namespace lockstep::deepspeed_sites
