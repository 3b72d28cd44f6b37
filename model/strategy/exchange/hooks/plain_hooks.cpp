#include "model/strategy/exchange/hooks/plain_hooks.hpp"

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/exchange/hooks/hook_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

using namespace hook_sites;

Ticket AllReduceHook::start(Rank& rank, const FullBucket& bucket) {
  const Ticket divided = elementwise(rank, Kernel::scale, {}, {bucket.flat},
                                     1.0 / rank.world_size(), {bucket.filled}, site_id(prepare));
  return all_reduce(rank, world_group, bucket.flat, divided, site_id(reduce_gradients));
}

Ticket NoopHook::start(Rank&, const FullBucket& bucket) { return bucket.filled; }

CastingHook::CastingHook(DType dtype, std::unique_ptr<BucketHook> inner)
    : dtype_(dtype), inner_(std::move(inner)) {}

Ticket CastingHook::start(Rank& rank, const FullBucket& bucket) {
  if (bucket.flat.dtype == dtype_) {
    return inner_->start(rank, bucket);
  }
  FullBucket narrow = bucket;
  narrow.flat = rank.allocate(Purpose::communication, dtype_, bucket.flat.elements, DeviceId{0},
                              queue::communication);
  narrow_.push_back(narrow.flat);
  narrow.parts = parts_of(narrow.flat, bucket.parts);
  narrow.filled = elementwise(rank, Kernel::cast, {bucket.flat}, {narrow.flat}, 0, {bucket.filled},
                              site_id(prepare));
  const Ticket reduced = inner_->start(rank, narrow);
  return elementwise(rank, Kernel::cast, {narrow.flat}, {bucket.flat}, 0,
                     {communication_stream, {reduced}, site_id(unpack)});
}

Program CastingHook::finish(Rank& rank) {
  co_await inner_->finish(rank);
  for (const Slice& each : std::exchange(narrow_, {})) {
    rank.release(each);
  }
}

}  // namespace lockstep
