#pragma once

#include <string_view>

namespace lockstep::negotiation_sites {

// What Horovod's background thread does, as findings call it.
inline constexpr std::string_view make_groups = "horovod: init, communicators";
inline constexpr std::string_view take = "horovod: a cycle takes tensors from the queue";
inline constexpr std::string_view compare_bits =
    "horovod: negotiation, all_reduce of which cached tensors are ready";
inline constexpr std::string_view compare_outdated =
    "horovod: negotiation, all_reduce of which cached tensors have changed";
inline constexpr std::string_view gather_lengths =
    "horovod: negotiation, all_gather of the lengths of request lists";
inline constexpr std::string_view gather_requests =
    "horovod: negotiation, gather of request lists to rank 0";
inline constexpr std::string_view send_length =
    "horovod: negotiation, broadcast of the length of the response list";
inline constexpr std::string_view send_responses =
    "horovod: negotiation, broadcast of the response list";
inline constexpr std::string_view wait_for_ranks =
    "horovod: negotiation, no tensor is ready on all ranks";
inline constexpr std::string_view sleep = "horovod: rest of the cycle";
inline constexpr std::string_view pack = "horovod: tensors into the fusion buffer";
inline constexpr std::string_view reduce = "horovod: all_reduce of a fusion buffer";
inline constexpr std::string_view reduce_alone = "horovod: all_reduce of a tensor";
inline constexpr std::string_view postscale = "horovod: division of a sum";
inline constexpr std::string_view spread_buffer = "horovod: fusion buffer into tensors";
inline constexpr std::string_view gather = "horovod: all_gather of a tensor";
inline constexpr std::string_view gather_part =
    "horovod: all_gather of unequal parts, broadcast of one";
inline constexpr std::string_view send = "horovod: broadcast of a tensor";
inline constexpr std::string_view zeros = "horovod: zeros of a rank that has joined";

inline constexpr std::string_view every_step[] = {make_groups,    take,
                                                  compare_bits,   compare_outdated,
                                                  gather_lengths, gather_requests,
                                                  send_length,    send_responses,
                                                  wait_for_ranks, sleep,
                                                  pack,           reduce,
                                                  reduce_alone,   postscale,
                                                  spread_buffer,  gather,
                                                  gather_part,    send,
                                                  zeros};

}  // namespace lockstep::negotiation_sites
