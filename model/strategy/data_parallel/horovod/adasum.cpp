#include "model/strategy/data_parallel/horovod/adasum.hpp"

#include <bit>

#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

// The product of both, two norms, and what is made of them; read once for each half.
Ticket adasum_of(Rank& rank, const std::vector<Slice>& first, const std::vector<Slice>& second,
                 const std::vector<Slice>& sums, const ComputeOptions& options) {
  std::vector<Slice> reads = first;
  reads.insert(reads.end(), second.begin(), second.end());
  KernelCall call;
  call.kernel = Kernel::adasum;
  call.work = 9 * total_elements(sums);
  call.memory_traffic = total_bytes(reads) * 2 + total_bytes(sums);
  call.reads = reads;
  call.writes = sums;
  return rank.compute(call, options);
}

Program AdasumExchange::begin(Rank& rank) {
  const Place& place = rank.place();
  const int32_t of_node = place.local_world_size;
  const int32_t nodes = rank.world_size() / of_node;
  const SiteId site = site_id(horovod_sites::make_groups);
  if (!std::has_single_bit(static_cast<uint32_t>(nodes))) {
    throw ProgramException(site,
                           "NotImplementedError: Running GPU Adasum with non-power of 2 nodes is "
                           "not supported yet.");
  }
  if (has_groups_) {
    co_return;
  }
  has_groups_ = true;
  const CommunicationOptions options{communication_stream, {}, site};
  const int32_t node = rank.id() / of_node;
  if (of_node > 1 && nodes > 1) {
    const Rank::NewGroup made = rank.split_group(world_group, node, options);
    co_await rank.settle(made.ready);
    node_ = made.group;
  }
  for (int32_t distance = 1; distance < nodes; distance *= 2) {
    const int32_t lower = node & ~distance;
    const Rank::NewGroup made =
        rank.split_group(world_group, lower * of_node + rank.id() % of_node, options);
    co_await rank.settle(made.ready);
    pairs_.push_back(made.group);
  }
}

void AdasumExchange::remember(Rank& rank, size_t optimizer) {
  values_.clear();
  for (const Replica::Parameter& parameter : replica_->parameters()) {
    if (parameter.trainable &&
        replica_->plan().optimizers[optimizer].holds(parameter.place.layer)) {
      values_.push_back(parameter.tensor.value);
    }
  }
  if (values_.empty()) {
    return;
  }
  start_ = rank.allocate(Purpose::communication, values_.front().dtype, total_elements(values_));
  copy_each(rank, values_, parts_of(start_, values_),
            {replica_->compute(), {}, site_id(horovod_sites::deltas)});
}

Ticket AdasumExchange::combine_pair(Rank& rank, GroupId pair, Ticket after) {
  const Slice both = rank.allocate(Purpose::communication, delta_.dtype, 2 * delta_.elements);
  const Ticket gathered = rank.all_gather(
      pair, delta_, both, {communication_stream, {after}, site_id(horovod_sites::exchange_deltas)});
  const ComputeOptions options{
      replica_->compute(), {gathered}, site_id(horovod_sites::combine_deltas)};
  const std::vector<Slice> first = parts_of(both.part(0, delta_.elements), values_);
  const std::vector<Slice> second = parts_of(both.part(delta_.elements, delta_.elements), values_);
  const Ticket combined = adasum_of(rank, first, second, parts_of(delta_, values_), options);
  rank.release(both);
  return combined;
}

Task<std::vector<Bytes>> AdasumExchange::combine(Rank& rank) {
  std::vector<Bytes> messages;
  if (values_.empty()) {
    co_return messages;
  }
  const ComputeOptions place{replica_->compute(), {}, site_id(horovod_sites::deltas)};
  delta_ = rank.allocate(Purpose::communication, start_.dtype, start_.elements);
  copy_each(rank, values_, parts_of(delta_, values_), place);
  Ticket ready = elementwise(rank, Kernel::add_scaled, {start_}, {delta_}, -1, place);
  const int32_t of_node = rank.place().local_world_size;
  if (of_node > 1) {
    co_await rank.settle(ready);
    const Ticket summed =
        rank.all_reduce(node_, delta_, Reduction::sum,
                        {communication_stream, {ready}, site_id(horovod_sites::average_deltas)});
    ready = elementwise(rank, Kernel::scale, {}, {delta_}, 1.0 / of_node,
                        {replica_->compute(), {summed}, site_id(horovod_sites::deltas)});
    messages.push_back(delta_.bytes());
  }
  for (const GroupId pair : pairs_) {
    co_await rank.settle(ready);
    ready = combine_pair(rank, pair, ready);
    messages.push_back(delta_.bytes());
  }
  elementwise(rank, Kernel::add, {delta_}, {start_}, 0, place);
  copy_each(rank, parts_of(start_, values_), values_, place);
  rank.release(delta_);
  rank.release(start_);
  co_return messages;
}

}  // namespace lockstep
