#pragma once

#include <string_view>

namespace lockstep::horovod_sites {

// What its operations are called in findings, beside those of the negotiation.
inline constexpr std::string_view send_states = "horovod: broadcast of parameters and buffers";
inline constexpr std::string_view send_optimizer = "horovod: broadcast of the optimizer's state";
inline constexpr std::string_view take_state =
    "horovod: options and state of rank 0's optimizer, taken over";
inline constexpr std::string_view first_step =
    "horovod: step with zero gradients, which makes the optimizer's state";
inline constexpr std::string_view compress = "horovod: gradient to half precision and back";
inline constexpr std::string_view synchronize = "horovod: synchronize";
inline constexpr std::string_view join = "horovod: join";
inline constexpr std::string_view update = "horovod: optimizer step";

inline constexpr std::string_view make_groups = "horovod: groups of Adasum";
inline constexpr std::string_view deltas = "horovod: what the local step has changed";
inline constexpr std::string_view average_deltas = "horovod: all_reduce of changes in a node";
inline constexpr std::string_view exchange_deltas = "horovod: exchange of changes with a node";
inline constexpr std::string_view combine_deltas = "horovod: Adasum of two changes";

inline constexpr std::string_view every_step[] = {
    send_states, send_optimizer, take_state, first_step,     compress,        synchronize,   join,
    update,      make_groups,    deltas,     average_deltas, exchange_deltas, combine_deltas};

}  // namespace lockstep::horovod_sites
