#include "model/strategy/sharded/fairscale/reduction_bucket.hpp"

#include <algorithm>
#include <utility>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded_sites.hpp"
#include "model/strategy/sharded/fsdp/post_backward.hpp"

namespace lockstep {

ReductionBucket::ReductionBucket(const Options& options)
    : options_(options),
      shard_elements_(options.capacity.count() / size_of(options.dtype) / options.ranks),
      held_elements_(options.carries_values ? std::min(shard_elements_, options.most_elements)
                                            : shard_elements_) {}

void ReductionBucket::add(Rank& rank, ShardedUnit& unit, Ticket done) {
  const int64_t elements = unit.layout().shard_elements();
  if (elements > shard_elements_ - filled_) {
    flush(rank);
  }
  if (data_.buffer == no_buffer) {
    data_ = rank.allocate(Purpose::communication, options_.dtype, options_.ranks * held_elements_);
  }
  unit.pack_for_reduction(rank, data_.part(options_.ranks * filled_, options_.ranks * elements),
                          1 / options_.division.before, done,
                          site_id(fully_sharded_sites::fill_bucket));
  members_.push_back({&unit, filled_});
  filled_ += elements;
}

// What each rank gets lies together.
void ReductionBucket::pack(Rank& rank, const Slice& packed) const {
  const ComputeOptions options{compute_stream, {}, site_id(fully_sharded_sites::reduce_bucket)};
  if (!options_.carries_values) {
    moving(rank, {data_.part(0, packed.elements)}, {packed}, options);
    return;
  }
  std::vector<Slice> from;
  std::vector<Slice> to;
  for (const Member& member : members_) {
    const int64_t elements = member.unit->layout().shard_elements();
    for (int32_t owner = 0; owner < options_.ranks; ++owner) {
      from.push_back(data_.part(options_.ranks * member.offset + owner * elements, elements));
      to.push_back(packed.part(owner * filled_ + member.offset, elements));
    }
  }
  elementwise(rank, Kernel::copy, from, to, 0, options);
}

void ReductionBucket::flush(Rank& rank) {
  if (members_.empty()) {
    return;
  }
  const SiteId site = site_id(fully_sharded_sites::reduce_bucket);
  const Slice packed = rank.allocate(Purpose::communication, options_.dtype,
                                     options_.ranks * filled_, DeviceId{0}, queue::communication);
  pack(rank, packed);
  const Slice sums = rank.allocate(Purpose::gradient, options_.dtype, held_elements_, DeviceId{0},
                                   queue::post_backward);
  const Ticket ready = rank.event({compute_stream, {}, site});
  const Ticket done =
      rank.reduce_scatter(options_.group, packed, sums.part(0, filled_), Reduction::sum, {},
                          {communication_stream, {ready}, site});
  rank.release(packed);
  const SiteId taken = site_id(fully_sharded_sites::take_gradients);
  for (const Member& member : std::exchange(members_, {})) {
    const int64_t elements = member.unit->layout().shard_elements();
    member.unit->take_reduced(rank, sums.part(member.offset, elements), 1 / options_.division.after,
                              done, taken);
  }
  rank.release(sums);
  filled_ = 0;
}

void ReductionBucket::free(Rank& rank) {
  if (data_.buffer != no_buffer) {
    rank.release(std::exchange(data_, Slice{}));
  }
}

}  // namespace lockstep
