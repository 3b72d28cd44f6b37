#pragma once

#include "model/program/task.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// The forward of a replica. The host waits for it where the network routes tokens: a module of
/// experts asks which of them have tokens (`torch.where` of a mask), as every list of experts does.
/// It waits for the statistics of all ranks, too: SyncBatchNorm leaves out those of empty batches.
Task<Ticket> forward_of(Rank& rank, Replica& replica, const Batch& batch,
                        const StepOptions& options);
/// The same wait alone; `ready`: what the forward's end gave.
Program await_routing(Rank& rank, Replica& replica, Ticket ready);

}  // namespace lockstep
