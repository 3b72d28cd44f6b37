#pragma once

#include <string_view>

namespace lockstep::fsdp_sites {

// What its operations are called in findings.
inline constexpr std::string_view make_groups = "fsdp: new_group of a node or of its replicas";
inline constexpr std::string_view send_states = "fsdp: broadcast of module states";
inline constexpr std::string_view gather_unit = "fsdp: all_gather of a unit's parameters";
inline constexpr std::string_view wait_for_unit = "fsdp: a unit's parameters are there";
inline constexpr std::string_view free_unit = "fsdp: a unit's parameters are freed";
inline constexpr std::string_view reduce_unit = "fsdp: reduce_scatter of a unit's gradients";
inline constexpr std::string_view reduce_replicas = "fsdp: all_reduce of gradients across replicas";
inline constexpr std::string_view take_gradients = "fsdp: gradients of the shard";
inline constexpr std::string_view share_norm = "fsdp: all_reduce of the gradients' norm";
inline constexpr std::string_view zero_gradients = "fsdp: zero_grad";
inline constexpr std::string_view update = "fsdp: optimizer step";
inline constexpr std::string_view gather_state = "fsdp: all_gather of a unit for the state_dict";
inline constexpr std::string_view summon = "fsdp: all_gather of a unit for summon_full_params";
inline constexpr std::string_view gather_optimizer =
    "fsdp: exchange of optimizer state for the state_dict";
inline constexpr std::string_view exchange_plans = "fsdp: exchange of a checkpoint's plan";
/// Where it raises (known_exceptions.cpp).
inline constexpr std::string_view norm_in_wide_type = "fsdp: a batch norm without mixed precision";
inline constexpr std::string_view shared_weight = "fsdp: a weight of another unit";

inline constexpr std::string_view every_step[] = {
    norm_in_wide_type, shared_weight,  make_groups, send_states,     gather_unit,
    wait_for_unit,     free_unit,      reduce_unit, reduce_replicas, take_gradients,
    share_norm,        zero_gradients, update,      gather_state,    summon,
    gather_optimizer,  exchange_plans};

}  // namespace lockstep::fsdp_sites
