#pragma once

#include "model/program/rank.hpp"

namespace lockstep {

/// Op::tag of a copy from one GPU of a rank to another of the same rank. Other copies have 0: those
/// to and from the host, and within the memory of one GPU.
inline constexpr int32_t between_devices = 1;

/// Copies from one GPU of this rank to another: communication, though without a peer.
Ticket copy_between_devices(Rank& rank, const Slice& from, const Slice& to,
                            const CommunicationOptions& options);

}  // namespace lockstep
