#pragma once

#include <string_view>

namespace lockstep::fsdp2_sites {

// What its operations are called in findings.
inline constexpr std::string_view make_groups = "fully_shard: new_group of a device mesh";
inline constexpr std::string_view gather_unit = "fully_shard: all_gather of a module's parameters";
inline constexpr std::string_view wait_for_unit = "fully_shard: a module's parameters are there";
inline constexpr std::string_view free_unit = "fully_shard: a module's parameters are freed";
inline constexpr std::string_view reduce_unit =
    "fully_shard: reduce_scatter of a module's gradients";
inline constexpr std::string_view reduce_replicas =
    "fully_shard: all_reduce of gradients across replicas";
inline constexpr std::string_view take_gradients = "fully_shard: gradients of the shards";
inline constexpr std::string_view share_norm = "fully_shard: all_reduce of the gradients' norms";
inline constexpr std::string_view share_update_norm =
    "fully_shard: all_reduce of a norm that the optimizer takes";
inline constexpr std::string_view zero_gradients = "fully_shard: zero_grad";
inline constexpr std::string_view update = "fully_shard: optimizer step";
inline constexpr std::string_view gather_state =
    "fully_shard: all_gather of a tensor for the state_dict";
inline constexpr std::string_view exchange_plans = "fully_shard: exchange of a checkpoint's plan";

inline constexpr std::string_view every_step[] = {
    make_groups,     gather_unit,    wait_for_unit, free_unit,         reduce_unit,
    reduce_replicas, take_gradients, share_norm,    share_update_norm, zero_gradients,
    update,          gather_state,   exchange_plans};

}  // namespace lockstep::fsdp2_sites
