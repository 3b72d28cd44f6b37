// What DeepSpeed's engine does around the files of a checkpoint (deepspeed/runtime/engine.py).
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"

namespace lockstep {

namespace {

// _checkpoint_tag_validation: a SHA-1 of the name, its maximum and its minimum.
Program agree_on_tag(Rank& rank, SiteId site) {
  constexpr int64_t digest_bytes = 20;
  for (const Reduction reduction : {Reduction::max, Reduction::min}) {
    const Slice digest = rank.allocate(Purpose::communication, DType::uint8, digest_bytes);
    const Ticket ready = rank.event({compute_stream, {}, site});
    const Ticket shared =
        rank.all_reduce(world_group, digest, reduction, {communication_stream, {ready}, site});
    co_await rank.settle(shared);
    rank.release(digest);
  }
}

}  // namespace

// Folders of partitions are made rank after rank, with a barrier behind each.
Task<Bytes> save_engine_checkpoint(Rank& rank, EngineCheckpoint saved, CheckpointRequest request,
                                   SiteId site) {
  co_await send_path(rank, request, site);
  co_await framework_barrier(rank, world_group, saved.barrier_is_all_reduce, site);
  if (saved.compares_tags) {
    co_await agree_on_tag(rank, site);
  }
  co_await write_file(rank, saved.model, request, 1, site);
  if (saved.is_parted) {
    for (int32_t turn = 0; turn < rank.world_size(); ++turn) {
      co_await framework_barrier(rank, world_group, saved.barrier_is_all_reduce, site);
    }
    co_await write_file(rank, saved.partition, request, rank.place().local_world_size, site);
  }
  co_return saved.model + saved.partition;
}

}  // namespace lockstep
