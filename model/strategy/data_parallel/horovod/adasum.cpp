#include "model/strategy/data_parallel/horovod/adasum.hpp"

#include <bit>

#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

namespace {

// Far below the norm of what trains, so that a vector of zeros projects on nothing.
constexpr double least_norm = 1e-30;

Ticket to_unit_length(Rank& rank, const Slice& vector, const ComputeOptions& options) {
  const double scalars[] = {static_cast<double>(vector.elements), 1, least_norm};
  KernelCall call;
  call.kernel = Kernel::orthogonalize;
  call.work = 4 * vector.elements;
  call.memory_traffic = vector.bytes() * 2;
  call.writes = {&vector, 1};
  call.scalars = scalars;
  return rank.compute(call, options);
}

// `rows` x `inner` by `inner` x 1.
void product(Rank& rank, const Slice& left, const Slice& right, const Slice& result, int64_t inner,
             const ComputeOptions& options) {
  const Slice reads[] = {left, right};
  const double scalars[] = {static_cast<double>(result.elements), static_cast<double>(inner), 1, 0,
                            0};
  KernelCall call;
  call.kernel = Kernel::matrix_product;
  call.work = 2 * result.elements * inner;
  call.memory_traffic = left.bytes() + right.bytes() + result.bytes();
  call.reads = reads;
  call.writes = {&result, 1};
  call.scalars = scalars;
  rank.compute(call, options);
}

// sum -= half of the projection of `other` on `own`.
void subtract_half_projection(Rank& rank, const Slice& own, const Slice& other, const Slice& sum,
                              const ComputeOptions& options) {
  const Slice unit = rank.allocate(Purpose::workspace, own.dtype, own.elements);
  const Slice dot = rank.allocate(Purpose::workspace, own.dtype, 1);
  const Slice projection = rank.allocate(Purpose::workspace, own.dtype, own.elements);
  copy_each(rank, {own}, {unit}, options);
  to_unit_length(rank, unit, options);
  product(rank, unit, other, dot, own.elements, options);
  product(rank, unit, dot, projection, 1, options);
  elementwise(rank, Kernel::add_scaled, {projection}, {sum}, -0.5, options);
  rank.release(unit);
  rank.release(dot);
  rank.release(projection);
}

}  // namespace

void adasum_of(Rank& rank, const Slice& first, const Slice& second, const Slice& sum,
               const ComputeOptions& options) {
  copy_each(rank, {first}, {sum}, options);
  elementwise(rank, Kernel::add, {second}, {sum}, 0, options);
  subtract_half_projection(rank, first, second, sum, options);
  subtract_half_projection(rank, second, first, sum, options);
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
  const std::vector<Slice> sums = parts_of(delta_, values_);
  for (size_t tensor = 0; tensor < sums.size(); ++tensor) {
    adasum_of(rank, first[tensor], second[tensor], sums[tensor], options);
  }
  rank.release(both);
  return rank.event({replica_->compute(), {}, site_id(horovod_sites::combine_deltas)});
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
