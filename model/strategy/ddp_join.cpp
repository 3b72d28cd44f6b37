// Uneven inputs: torch's Join context. A rank whose data have ended mirrors the collectives of the
// others' iterations until none has data left (PyTorch algorithms/join.py, distributed.py).
#include <numeric>

#include "model/strategy/ddp.hpp"
#include "model/strategy/ddp_sites.hpp"

namespace lockstep {

using namespace ddp_sites;

Task<int64_t> DistributedDataParallel::agree_on_join(Rank& rank, int64_t own, Reduction reduction,
                                                     std::string_view step) {
  return agree(rank, world_group, scratch_, own, reduction, site_id(step));
}

Program DistributedDataParallel::join(Rank& rank) {
  if (!options_.join) {
    co_return;
  }
  co_await rank.settle_all(exchanged_);
  exchanged_.clear();
  bool joined_last = true;
  while (true) {
    active_ranks_ = co_await agree_on_join(rank, 0, Reduction::sum, count_active);
    if (active_ranks_ == 0) {
      break;
    }
    joined_last = false;
    co_await shadow_iteration(rank);
  }
  const int64_t last =
      co_await agree_on_join(rank, joined_last ? rank.id() : -1, Reduction::max, last_joiner);
  buffer_root_ = static_cast<int32_t>(last);
  co_await adopt_last_joiner(rank);
}

// The same collectives as an active rank's iteration, contributing nothing.
Program DistributedDataParallel::shadow_iteration(Rank& rank) {
  if (rebuild_due_) {
    co_await rebuild_buckets(rank);
  }
  if (options_.broadcast_buffers && require_forward_sync_ && !replica_.buffers().empty()) {
    buffer_root_ =
        static_cast<int32_t>(co_await agree_on_join(rank, -1, Reduction::max, choose_root));
    co_await synchronise_buffers(rank);
  }
  const int64_t synchronising = co_await agree_on_join(rank, 0, Reduction::sum, will_synchronise);
  require_forward_sync_ = synchronising != 0;
  if (synchronising == 0) {
    co_return;  // a forward inside no_sync
  }
  const double zero = 0;
  for (Bucket& bucket : buckets_) {
    KernelCall call;
    call.kernel = Kernel::fill;
    call.writes = {&bucket.flat, 1};
    call.scalars = {&zero, 1};
    call.memory_traffic = bucket.flat.bytes();
    const Ticket cleared = rank.compute(call, {replica_.compute(), {}, site_id(fill_bucket)});
    bucket.reduced = rank.all_reduce(world_group, bucket.flat, Reduction::sum,
                                     {communication_stream, {cleared}, site_id(reduce_bucket)});
    co_await rank.settle(bucket.reduced);
  }
  if (options_.find_unused_parameters) {
    co_await rank.settle(used_map_reduced_);
    reduce_used_map(rank);
  }
  // A rank that joins before a backward of its own rebuilds its buckets with the others all the
  // same; rank 0's order wins, so its own does not matter.
  if (record_order_ && (!options_.find_unused_parameters || options_.static_graph)) {
    ready_order_.resize(trainable_.size());
    std::iota(ready_order_.begin(), ready_order_.end(), size_t{0});
    rebuild_due_ = true;
  }
  record_order_ = false;
}

Program DistributedDataParallel::adopt_last_joiner(Rank& rank) {
  std::vector<Slice> model;
  for (const Replica::Parameter& parameter : replica_.parameters()) {
    model.push_back(parameter.tensor.value);
  }
  for (const Replica::Buffer& buffer : replica_.buffers()) {
    model.push_back(buffer.value);
  }
  co_await broadcast_coalesced(rank, world_group, model, buffer_root_, broadcast_chunk,
                               site_id(final_model));
}

}  // namespace lockstep
