#pragma once

#include <string_view>

namespace lockstep::fully_sharded_sites {

// What its operations are called in findings.
inline constexpr std::string_view make_groups = "ddp_fully_sharded: new_group of all ranks";
inline constexpr std::string_view gather_unit =
    "ddp_fully_sharded: all_gather of a unit's parameters";
inline constexpr std::string_view wait_for_unit =
    "ddp_fully_sharded: a unit's parameters are gathered";
inline constexpr std::string_view fill_bucket =
    "ddp_fully_sharded: gradients of a unit go into the bucket";
inline constexpr std::string_view reduce_bucket =
    "ddp_fully_sharded: reduce_scatter of the bucket of gradients";
inline constexpr std::string_view reduce_unit =
    "ddp_fully_sharded: reduce_scatter of a unit's gradients";
inline constexpr std::string_view take_gradients = "ddp_fully_sharded: gradients of the shard";
inline constexpr std::string_view share_norm =
    "ddp_fully_sharded: all_reduce of the gradients' norm";
inline constexpr std::string_view zero_gradients = "ddp_fully_sharded: zero_grad";
inline constexpr std::string_view update = "ddp_fully_sharded: optimizer step";
inline constexpr std::string_view gather_state =
    "ddp_fully_sharded: all_gather of a unit for the state_dict";
inline constexpr std::string_view summon =
    "ddp_fully_sharded: all_gather of a unit for summon_full_params";
/// Where it raises (known_exceptions.cpp).
inline constexpr std::string_view second_forward =
    "ddp_fully_sharded: backward of a unit in which a second forward has stopped";
inline constexpr std::string_view freed_unit =
    "ddp_fully_sharded: a unit that a checkpointed module has freed";

inline constexpr std::string_view every_step[] = {
    second_forward, freed_unit,    make_groups,  gather_unit,    wait_for_unit,
    fill_bucket,    reduce_bucket, reduce_unit,  take_gradients, share_norm,
    zero_gradients, update,        gather_state, summon};

}  // namespace lockstep::fully_sharded_sites
