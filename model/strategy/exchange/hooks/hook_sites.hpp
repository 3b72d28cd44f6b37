#pragma once

#include <string_view>

namespace lockstep::hook_sites {

// What operations of communication hooks and of model averaging are called in findings.
inline constexpr std::string_view prepare = "communication hook: before the all_reduce";
inline constexpr std::string_view reduce_gradients = "communication hook: all_reduce of a bucket";
inline constexpr std::string_view unpack = "communication hook: after the all_reduce";
inline constexpr std::string_view reduce_rest =
    "powerSGD_hook: all_reduce of what is not compressed";
inline constexpr std::string_view reduce_ps = "powerSGD_hook: all_reduce of P";
inline constexpr std::string_view reduce_qs = "powerSGD_hook: all_reduce of Q";
inline constexpr std::string_view compress = "powerSGD_hook: compression";
inline constexpr std::string_view make_subgroups = "post_localSGD_hook: new_subgroups";
inline constexpr std::string_view average_model =
    "PeriodicModelAverager: all_reduce of the parameters";
inline constexpr std::string_view make_levels = "HierarchicalModelAverager: new_subgroups";
inline constexpr std::string_view reduce_outer =
    "outer optimizer: all_reduce of what the inner steps have changed";
inline constexpr std::string_view outer_step = "outer optimizer: step";

inline constexpr std::string_view every_step[] = {
    prepare,  reduce_gradients, unpack,        reduce_rest, reduce_ps,    reduce_qs,
    compress, make_subgroups,   average_model, make_levels, reduce_outer, outer_step};

}  // namespace lockstep::hook_sites
