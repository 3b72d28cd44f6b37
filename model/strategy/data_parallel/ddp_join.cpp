// Uneven inputs: torch's Join context. A rank whose data have ended mirrors the collectives of the
// others' iterations until none has data left (PyTorch algorithms/join.py, distributed.py).
#include "model/strategy/data_parallel/ddp.hpp"
#include "model/strategy/data_parallel/ddp_sites.hpp"

namespace lockstep {

namespace {
constexpr int64_t nobody = -1;
}

// For an active rank

Program DistributedDataParallel::notify_join_context(Rank& rank) {
  co_await active_.reduce(rank, world_group, 1, Reduction::sum, site_id(ddp_sites::count_active));
  if (options_.throw_on_early_termination) {
    co_await ended_.reduce(rank, world_group, 0, Reduction::sum, site_id(ddp_sites::terminate));
    const int64_t ended = co_await ended_.value(rank);
    if (ended > 0) {
      throw ProgramException(site_id(ddp_sites::terminate),
                             "throw_on_early_termination: another rank has no data left");
    }
  }
}

Program DistributedDataParallel::announce_synchronisation(Rank& rank) {
  co_await synchronises_.reduce(rank, world_group, synchronising_ ? 1 : 0, Reduction::sum,
                                site_id(ddp_sites::will_synchronise));
}

// Late samples weigh more where the average is over those that still have data.
Task<int64_t> DistributedDataParallel::dividing_ranks(Rank& rank) {
  if (!options_.join || options_.divide_by_initial_world_size) {
    co_return rank.world_size();
  }
  co_return co_await active_.value(rank);
}

// The largest rank that is a candidate.
Task<int32_t> DistributedDataParallel::common_rank(Rank& rank, int64_t candidate,
                                                   std::string_view step) {
  co_await candidate_.reduce(rank, world_group, candidate, Reduction::max, site_id(step));
  const int64_t chosen = co_await candidate_.value(rank);
  co_return static_cast<int32_t>(chosen);
}

// For a rank without data

Task<bool> DistributedDataParallel::join(Rank& rank, MirroredIterations& others) {
  if (!options_.join || !is_wrapped()) {
    co_return false;
  }
  co_await reducer_->settle(rank);
  bool joins_last = true;
  while (true) {
    others.begin();
    co_await active_.reduce(rank, world_group, 0, Reduction::sum, site_id(ddp_sites::count_active));
    const int64_t active = co_await active_.value(rank);
    if (active == 0) {
      break;
    }
    if (options_.throw_on_early_termination) {
      co_await ended_.reduce(rank, world_group, 1, Reduction::sum, site_id(ddp_sites::terminate));
      co_await ended_.value(rank);
      throw ProgramException(site_id(ddp_sites::terminate),
                             "throw_on_early_termination: this rank has no data left");
    }
    joins_last = false;
    co_await shadow_iteration(rank);
    others.end(require_forward_sync_);
  }
  const int32_t last =
      co_await common_rank(rank, joins_last ? rank.id() : nobody, ddp_sites::last_joiner);
  co_await broadcast_coalesced(rank, world_group, module_state(), last,
                               site_id(ddp_sites::final_model));
  co_return true;
}

// Runs the collectives of an active rank's iteration, contributing nothing.
Program DistributedDataParallel::shadow_iteration(Rank& rank) {
  co_await reducer_->rebuild_buckets(rank);
  if (must_send_buffers()) {
    const int32_t root = co_await common_rank(rank, nobody, ddp_sites::choose_root);
    co_await broadcast_coalesced(rank, world_group, replica_.state().buffer_values(), root,
                                 site_id(ddp_sites::send_buffers));
  }
  co_await synchronises_.reduce(rank, world_group, 0, Reduction::sum,
                                site_id(ddp_sites::will_synchronise));
  const int64_t synchronising = co_await synchronises_.value(rank);
  require_forward_sync_ = synchronising > 0;
  if (require_forward_sync_) {  // not inside of no_sync
    co_await reducer_->reduce_zeros(rank);
  }
}

}  // namespace lockstep
