// What a checkpoint of shards holds, and who writes it.
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/fsdp/unit_sharding.hpp"

namespace lockstep {

ShardedCheckpoint UnitSharding::checkpoint() const {
  return {replica_, plan(), {shard_ranks_, tensor_ranks_.ranks, has_stepped_}};
}

Program UnitSharding::end_whole_parameters(Rank& rank) {
  summoned_.end(rank);
  co_return;
}

Slice UnitSharding::clone_of(Rank& rank, const Unit& unit, const Slice& whole) {
  const SiteId site = site_id(steps_.gather_state);
  std::vector<Slice> from;
  int64_t elements = 0;
  const std::vector<size_t>& parameters = unit.state.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t own = elements_of(parameters[i]);
    from.push_back(whole.buffer == no_buffer ? replica_.parameters()[parameters[i]].tensor.value
                                             : whole.part(unit.state.layout().offset_of(i), own));
    elements += own;
  }
  const Slice clone = rank.allocate(Purpose::gathered, from.front().dtype, elements);
  std::vector<Slice> to;
  for (const Slice& part : from) {
    to.push_back(clone.part(to.empty() ? 0 : to.back().begin + to.back().elements, part.elements));
  }
  elementwise(rank, Kernel::copy, from, to, 0, {compute_stream, {}, site});
  return clone;
}

Bytes UnitSharding::own_checkpoint_bytes(const CheckpointRequest& request) const {
  Bytes bytes = checkpoint().bytes().weights;
  for (const Unit& unit : units_) {
    bytes += request.weights_only ? Bytes{} : unit.state.state_bytes();
  }
  return bytes;
}

Program UnitSharding::gather_for_file(Rank& rank, int64_t part, int64_t whole, HostCopy* host) {
  const SiteId site = site_id(steps_.gather_state);
  const DType dtype = plan().parameter_dtype;
  const Slice own = rank.allocate(Purpose::communication, dtype, part);
  const Slice all = rank.allocate(Purpose::gathered, dtype, part * shard_ranks_);
  const Ticket updated = rank.event({compute_stream, {}, site});
  const Ticket gathered =
      rank.all_gather(shard_group_, own, all, {communication_stream, {updated}, site});
  co_await rank.settle(gathered);
  if (host != nullptr && whole > 0) {
    host->add(rank, all.part(0, whole), site);
  }
  rank.release(all);
  rank.release(own);
}

Task<WrittenBytes> UnitSharding::write_checkpoint(Rank& rank, CheckpointRequest request,
                                                  bool in_parts, SiteId site) {
  co_await send_path(rank, request, site);
  if (!in_parts) {
    const Bytes bytes = rank.id() == 0 ? checkpoint().bytes().of(request) : Bytes{};
    co_await write_file(rank, bytes, request, 1, site);
    co_return bytes;
  }
  const CheckpointParts parts = checkpoint().parts(rank.world_size(), request.weights_only);
  WrittenBytes written = co_await save_parts(rank, parts, request, site_id(steps_.exchange_plans));
  if (shard_ranks_ < rank.world_size()) {  // else ranks with like shards write as much
    written.by_rank = parts.bytes_by_rank();
  }
  co_return written;
}

}  // namespace lockstep
