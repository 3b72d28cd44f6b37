#pragma once

#include <string_view>

namespace lockstep::bagua_sites {

// What its operations are called in findings.
inline constexpr std::string_view make_groups =
    "bagua: communicators of nodes and of their leaders";
inline constexpr std::string_view send_parameters = "bagua: broadcast of parameters";
inline constexpr std::string_view send_optimizer = "bagua: broadcast of the optimizer's state";
inline constexpr std::string_view fill_bucket = "bagua: a gradient into its bucket";
inline constexpr std::string_view average_bucket = "bagua: all_reduce of a bucket";
inline constexpr std::string_view reduce_to_leader = "bagua: reduce to the node's leader";
inline constexpr std::string_view send_from_leader = "bagua: broadcast from the node's leader";
inline constexpr std::string_view compress_chunks = "bagua: compression of a bucket";
inline constexpr std::string_view exchange_chunks = "bagua: all_to_all of compressed chunks";
inline constexpr std::string_view average_chunk = "bagua: mean of the own chunk";
inline constexpr std::string_view gather_chunks = "bagua: all_gather of compressed chunks";
inline constexpr std::string_view wait_for_buckets = "bagua: buckets are exchanged";
inline constexpr std::string_view momentum = "bagua: momentum of a bucket";
inline constexpr std::string_view copy_weights = "bagua: copy of the weights";
inline constexpr std::string_view average_weights = "bagua: all_reduce of weights";
inline constexpr std::string_view swap_weights = "bagua: weights of the peer";
inline constexpr std::string_view take_weights = "bagua: averaged weights come back";
inline constexpr std::string_view difference = "bagua: difference of the weights";
inline constexpr std::string_view swap_differences = "bagua: differences of both neighbours";
inline constexpr std::string_view negotiate = "bagua: async, all_reduce of who asks to end";
inline constexpr std::string_view snapshot = "bagua: async, copy of the weights";
inline constexpr std::string_view average_snapshots = "bagua: async, all_reduce of the copies";
inline constexpr std::string_view apply_average = "bagua: async, average into the weights";
inline constexpr std::string_view serve = "bagua: async, which comes first, the thread or training";
inline constexpr std::string_view interval = "bagua: async, sync_interval_ms";
inline constexpr std::string_view abort_thread = "bagua: async, barrier before the thread ends";
inline constexpr std::string_view update = "bagua: optimizer step";

inline constexpr std::string_view every_step[] = {
    make_groups,       send_parameters, send_optimizer,
    fill_bucket,       average_bucket,  reduce_to_leader,
    send_from_leader,  compress_chunks, exchange_chunks,
    average_chunk,     gather_chunks,   wait_for_buckets,
    momentum,          copy_weights,    average_weights,
    swap_weights,      take_weights,    difference,
    swap_differences,  negotiate,       snapshot,
    average_snapshots, apply_average,   serve,
    interval,          abort_thread,    update};

}  // namespace lockstep::bagua_sites
