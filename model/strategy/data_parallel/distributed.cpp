#include "model/strategy/data_parallel/distributed.hpp"

namespace lockstep {

namespace {
// c10d makes a collective wait for all that the current stream holds.
CommunicationOptions after_compute(Rank& rank, SiteId site) {
  return {communication_stream, {rank.event({compute_stream, {}, site})}, site};
}
}  // namespace

Program DistributedStrategy::reduce(Rank& rank, Slice data, Reduction reduction, SiteId site) {
  const GroupId group = co_await trainers(rank);
  co_await framework_barrier(rank, group, plan().barrier_is_all_reduce, site);
  const Ticket reduced = rank.all_reduce(group, data, reduction, after_compute(rank, site));
  co_await rank.settle(reduced);
}

Program DistributedStrategy::barrier(Rank& rank, SiteId site) {
  const GroupId group = co_await trainers(rank);
  co_await framework_barrier(rank, group, plan().barrier_is_all_reduce, site);
}

Program DistributedStrategy::broadcast(Rank& rank, Slice data, int32_t root, SiteId site) {
  const GroupId group = co_await trainers(rank);
  const Ticket sent = rank.broadcast(group, data, root, after_compute(rank, site));
  co_await rank.settle(sent);
}

Program DistributedStrategy::all_gather(Rank& rank, Slice part, Slice whole, SiteId site) {
  const GroupId group = co_await trainers(rank);
  const Ticket gathered = rank.all_gather(group, part, whole, after_compute(rank, site));
  co_await rank.settle(gathered);
}

}  // namespace lockstep
