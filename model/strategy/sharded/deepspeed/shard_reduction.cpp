#include "model/strategy/sharded/deepspeed/shard_reduction.hpp"

#include <algorithm>
#include <utility>

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/gradient_order.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"

namespace lockstep {

using namespace deepspeed_sites;

ShardReduction::ShardReduction(Replica& replica, MasterPartition& partition,
                               const DeepSpeedOptions& options)
    : replica_(&replica), partition_(&partition), options_(options) {
  for (const ShardPiece& piece : partition.layout().pieces_of(partition.index())) {
    position_of_[partition.parameters()[piece.tensor]] = piece.position;
  }
}

void ShardReduction::begin(Rank&, bool synchronise) {
  partition_->note_boundary(synchronise);
  bucket_.clear();
  bucket_filled_ = 0;
}

void ShardReduction::allocate(Rank& rank) {
  if (options_.contiguous_gradients) {
    memory_ = GradientBucket::allocate(rank, *replica_, options_.reduce_bucket_size);
  }
}

void ShardReduction::gradients_ready(Rank& rank, size_t layer, Ticket) {
  for (const size_t index : in_order_of_gradients(*replica_, layer)) {
    if (replica_->wants_gradient(replica_->parameters()[index])) {
      gradient_ready(rank, index);
    }
  }
}

void ShardReduction::gradient_ready(Rank& rank, size_t parameter) {
  const int64_t elements = replica_->parameters()[parameter].tensor.gradient.elements;
  if (!bucket_.empty() && bucket_filled_ + elements > options_.reduce_bucket_size) {
    reduce_bucket(rank);
  }
  if (options_.contiguous_gradients && bucket_filled_ + elements <= options_.reduce_bucket_size) {
    memory_.take(rank, *replica_, parameter, bucket_filled_);
  }
  bucket_.push_back(parameter);
  bucket_filled_ += elements;
}

// The parts of a rank lie one behind the other, in definition order, each padded to the size that
// all ranks' parts of that parameter have.
void ShardReduction::pack_bucket(Rank& rank, const ShardLayout& layout, const Slice& packed) {
  const SiteId site = site_id(fill_bucket);
  std::vector<Slice> from;
  std::vector<Slice> to;
  if (!replica_->plan().numerics) {
    for (const size_t index : bucket_) {
      from.push_back(replica_->parameters()[index].tensor.gradient);
    }
    moving(rank, from, {packed}, {compute_stream, {}, site});
    return;
  }
  for (int32_t owner = 0; owner < rank.world_size(); ++owner) {
    for (const ShardPiece& piece : layout.pieces_of(owner)) {
      const Slice& gradient = replica_->parameters()[bucket_[piece.tensor]].tensor.gradient;
      from.push_back(gradient.part(piece.first_element, piece.elements));
      to.push_back(packed.part(owner * layout.shard_elements() + piece.position, piece.elements));
    }
  }
  if (total_elements(to) < packed.elements) {
    elementwise(rank, Kernel::fill, {}, {packed}, 0, {compute_stream, {}, site});
  }
  const double factor = 1.0 / rank.world_size();
  if (packed.dtype == replica_->plan().parameter_dtype) {
    elementwise(rank, Kernel::scale, from, to, factor, {compute_stream, {}, site});
  } else {
    elementwise(rank, Kernel::cast, from, to, 0, {compute_stream, {}, site});
    elementwise(rank, Kernel::scale, {}, {packed}, factor, {compute_stream, {}, site});
  }
}

void ShardReduction::reduce_bucket(Rank& rank) {
  const std::vector<UnderWay> earlier = std::exchange(under_way_, {});
  std::sort(bucket_.begin(), bucket_.end());
  std::vector<ShardLayout::Rows> rows;
  for (const size_t index : bucket_) {
    rows.push_back({replica_->parameters()[index].tensor.gradient.elements, 1});
  }
  const ShardLayout layout = ShardLayout::by_rows(rows, rank.world_size());
  const DType travels_as =
      options_.communication_data_type.value_or(replica_->plan().parameter_dtype);
  UnderWay call{rank.allocate(Purpose::communication, travels_as, layout.gathered_elements()),
                {},
                bucket_,
                layout.pieces_of(partition_->index()),
                {}};
  pack_bucket(rank, layout, call.packed);
  const Ticket ready = rank.event({compute_stream, {}, site_id(fill_bucket)});
  call.part = rank.allocate(Purpose::communication, travels_as, layout.shard_elements());
  call.reduced = rank.reduce_scatter(world_group, call.packed, call.part, Reduction::sum, {},
                                     {communication_stream, {ready}, site_id(reduce_bucket_site)});
  reduced_ = call.reduced;
  exchanged_bytes_.push_back(call.packed.bytes());
  for (const UnderWay& each : earlier) {
    take(rank, each);
  }
  for (const size_t index : bucket_) {
    replica_->forget_gradient(rank, replica_->parameters()[index]);
  }
  under_way_.push_back(std::move(call));
  if (!options_.overlap_comm) {
    for (const UnderWay& each : std::exchange(under_way_, {})) {
      take(rank, each);
    }
  }
  bucket_.clear();
  bucket_filled_ = 0;
}

void ShardReduction::take(Rank& rank, const UnderWay& call) {
  const SiteId site = site_id(take_partition);
  rank.event({compute_stream, {call.reduced}, site});
  const DType own = replica_->plan().parameter_dtype;
  Slice part = call.part;
  if (part.dtype != own) {
    part = rank.allocate(Purpose::communication, own, call.part.elements);
    elementwise(rank, Kernel::cast, {call.part}, {part}, 0, {compute_stream, {}, site});
  }
  std::vector<Slice> parts;
  std::vector<int64_t> positions;
  for (const ShardPiece& piece : call.pieces) {
    parts.push_back(part.part(piece.position, piece.elements));
    positions.push_back(position_of_.at(call.parameters[piece.tensor]));
  }
  partition_->take_gradients(rank, parts, positions, site);
  if (part.buffer != call.part.buffer) {
    rank.release(part);
  }
  rank.release(call.part);
  rank.release(call.packed);
}

Program ShardReduction::finish(Rank& rank) {
  partition_->note_reduction();
  if (!bucket_.empty()) {
    reduce_bucket(rank);
  }
  for (const UnderWay& call : std::exchange(under_way_, {})) {
    take(rank, call);
  }
  co_return;
}

Program ShardReduction::settle(Rank& rank) {
  co_await rank.settle(std::exchange(reduced_, Ticket{}));
}

}  // namespace lockstep
