#pragma once

#include "model/program/rank.hpp"

namespace lockstep {

/// An object as Python pickles it, sent from `root` to all: a broadcast of its size, then one of
/// its bytes (torch.distributed.broadcast_object_list; FairScale's broadcast_object). The host
/// waits for the size before it sends the bytes.
Program broadcast_pickled(Rank& rank, GroupId group, Bytes size, int32_t root, SiteId site);

}  // namespace lockstep
