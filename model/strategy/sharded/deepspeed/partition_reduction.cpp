#include "model/strategy/sharded/deepspeed/partition_reduction.hpp"

#include <algorithm>
#include <utility>

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/gradient_order.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"

namespace lockstep {

using namespace deepspeed_sites;

PartitionReduction::PartitionReduction(Replica& replica, MasterPartition& partition,
                                       const PartitionReductionOptions& options)
    : replica_(&replica), partition_(&partition), options_(options) {
  parts_of_.resize(replica.parameters().size());
  const ShardLayout& layout = partition.layout();
  for (int32_t owner = 0; owner < layout.ranks(); ++owner) {
    for (const ShardPiece& piece : layout.pieces_of(owner)) {
      const size_t parameter = partition.parameters()[piece.tensor];
      parts_of_[parameter].push_back(
          {parameter, piece.first_element, piece.elements, owner, piece.position});
    }
  }
}

// Buckets are whole while a backward runs, however little is in them.
void PartitionReduction::begin(Rank& rank, bool synchronise) {
  synchronises_ = synchronise;
  bucket_.clear();
  bucket_filled_ = 0;
  filling_ = 0;
  const size_t count = options_.overlap_comm ? 2 : 1;
  while (reduces() && options_.contiguous_gradients && memory_.size() < count) {
    memory_.push_back(GradientBucket::allocate(rank, *replica_, options_.bucket_elements));
  }
}

void PartitionReduction::gradients_ready(Rank& rank, size_t layer, Ticket) {
  if (!reduces() || !options_.during_backward) {
    return;
  }
  for (const size_t index : in_order_of_gradients(*replica_, layer)) {
    if (replica_->wants_gradient(replica_->parameters()[index])) {
      add(rank, index);
    }
  }
}

// What does not fit any more sends the bucket first; what is larger than a bucket goes alone.
void PartitionReduction::add(Rank& rank, size_t parameter) {
  const int64_t elements = replica_->parameters()[parameter].tensor.value.elements;
  if (!bucket_.empty() && bucket_filled_ + elements > options_.bucket_elements) {
    reduce_bucket(rank);
  }
  if (options_.contiguous_gradients && elements <= options_.bucket_elements) {
    memory_[filling_].take(rank, *replica_, parameter, bucket_filled_);
  }
  bucket_.push_back(parameter);
  bucket_filled_ += elements;
}

// Which parts travel together, by the order of the bucket (average_tensor).
std::vector<std::vector<PartitionReduction::Part>> PartitionReduction::calls_of(
    const std::vector<size_t>& parameters) const {
  using Call = PartitionReductionOptions::Call;
  std::vector<std::vector<Part>> calls;
  std::vector<int32_t> owner_of_call;
  std::vector<int64_t> elements_of_call;
  std::vector<Part> merged;  // neighbours of one owner count as one
  for (const size_t parameter : parameters) {
    for (const Part& part : parts_of_[parameter]) {
      merged.push_back(part);
    }
  }
  const bool is_of_owners =
      options_.call == Call::reduce_to_owners || options_.call == Call::all_reduce_of_owners;
  const auto open_for = [&](int32_t owner) {
    for (size_t call = options_.call == Call::reduce_of_slices ? 0 : calls.size(); call-- > 0;) {
      const bool is_same = !is_of_owners || owner_of_call[call] == owner;
      if (is_same && (options_.call == Call::all_reduce ||
                      elements_of_call[call] <= options_.bucket_elements)) {
        return call;
      }
      if (is_same) {
        break;
      }
    }
    calls.emplace_back();
    owner_of_call.push_back(owner);
    elements_of_call.push_back(0);
    return calls.size() - 1;
  };
  for (size_t first = 0; first < merged.size();) {
    size_t end = first + 1;
    while (end < merged.size() && merged[end].owner == merged[first].owner) {
      ++end;
    }
    const size_t call = open_for(merged[first].owner);
    for (; first < end; ++first) {
      calls[call].push_back(merged[first]);
      elements_of_call[call] += merged[first].elements;
    }
  }
  return calls;
}

// While one bucket is being reduced, the next may fill.
void PartitionReduction::reduce_bucket(Rank& rank) {
  const std::vector<UnderWay> earlier = std::exchange(under_way_, {});
  for (const std::vector<Part>& parts : calls_of(bucket_)) {
    reduce_parts(rank, parts);
  }
  for (const UnderWay& call : earlier) {
    take(rank, call);
  }
  for (const size_t parameter : bucket_) {
    replica_->forget_gradient(rank, replica_->parameters()[parameter]);
  }
  if (!options_.overlap_comm) {
    for (const UnderWay& call : std::exchange(under_way_, {})) {
      take(rank, call);
    }
  }
  bucket_.clear();
  bucket_filled_ = 0;
  filling_ = memory_.empty() ? 0 : (filling_ + 1) % memory_.size();
}

// The bucket as it is travels from where it lies, unless in another type.
bool PartitionReduction::travels_in_place() const {
  const DType own = replica_->plan().parameter_dtype;
  return options_.call == PartitionReductionOptions::Call::all_reduce && !memory_.empty() &&
         options_.communicated.value_or(own) == own && bucket_filled_ <= options_.bucket_elements;
}

void PartitionReduction::reduce_parts(Rank& rank, const std::vector<Part>& parts) {
  const SiteId site = site_id(fill_bucket);
  int64_t elements = 0;
  std::vector<Slice> from;
  for (const Part& part : parts) {
    const Slice& gradient = replica_->parameters()[part.parameter].tensor.gradient;
    from.push_back(gradient.part(part.first_element, part.elements));
    elements += part.elements;
  }
  const DType own = replica_->plan().parameter_dtype;
  const DType travels_as = options_.communicated.value_or(own);
  const bool in_place = travels_in_place();
  const Slice packed = in_place ? memory_[filling_].part(0, elements)
                                : rank.allocate(Purpose::communication, travels_as, elements);
  const std::vector<Slice> to = parts_of(packed, from);
  const double factor = options_.division.before_sum(rank.world_size());
  if (in_place) {
    elementwise(rank, Kernel::scale, {}, {packed}, factor, {compute_stream, {}, site});
  } else if (travels_as == own) {
    elementwise(rank, Kernel::scale, from, to, factor, {compute_stream, {}, site});
  } else {
    elementwise(rank, Kernel::cast, from, to, 0, {compute_stream, {}, site});
    elementwise(rank, Kernel::scale, {}, {packed}, factor, {compute_stream, {}, site});
  }
  const CommunicationOptions options{
      communication_stream, {rank.event({compute_stream, {}, site})}, site_id(reduce_bucket_site)};
  using Call = PartitionReductionOptions::Call;
  reduced_ = options_.call == Call::reduce_to_owners || options_.call == Call::reduce_of_slices
                 ? rank.reduce(world_group, packed, Reduction::sum, parts.front().owner, options)
                 : rank.all_reduce(world_group, packed, Reduction::sum, options);
  exchanged_bytes_.push_back(packed.bytes());
  UnderWay call{packed, !in_place, {}, {}, reduced_};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].owner == partition_->index()) {
      call.own_parts.push_back(to[i]);
      call.positions.push_back(parts[i].position);
    }
  }
  under_way_.push_back(std::move(call));
}

// Own parts go into the partition once the sum is there.
void PartitionReduction::take(Rank& rank, const UnderWay& call) {
  const SiteId site = site_id(take_partition);
  const DType own = replica_->plan().parameter_dtype;
  rank.event({compute_stream, {call.reduced}, site});
  if (const double behind = options_.division.behind_sum(rank.world_size()); behind != 1) {
    elementwise(rank, Kernel::scale, {}, {call.packed}, behind, {compute_stream, {}, site});
  }
  std::vector<Slice> parts = call.own_parts;
  const bool is_wide = call.packed.dtype != own;
  if (is_wide && !parts.empty()) {
    for (Slice& each : parts) {
      each = rank.allocate(Purpose::communication, own, each.elements);
    }
    elementwise(rank, Kernel::cast, call.own_parts, parts, 0, {compute_stream, {}, site});
  }
  partition_->take_gradients(rank, parts, call.positions, site);
  if (is_wide) {
    for (const Slice& each : parts) {
      rank.release(each);
    }
  }
  if (call.owns_packed) {
    rank.release(call.packed);
  }
}

Program PartitionReduction::finish(Rank& rank) {
  if (!reduces()) {
    co_return;
  }
  partition_->note_reduction();
  if (!options_.during_backward) {
    for (size_t index = 0; index < replica_->parameters().size(); ++index) {
      if (replica_->parameters()[index].tensor.gradient.buffer != no_buffer) {
        add(rank, index);
      }
    }
  }
  if (!bucket_.empty()) {
    reduce_bucket(rank);
  }
  for (const UnderWay& call : std::exchange(under_way_, {})) {
    take(rank, call);
  }
  for (const GradientBucket& memory : std::exchange(memory_, {})) {
    memory.release(rank);
  }
}

Program PartitionReduction::settle(Rank& rank) {
  co_await rank.settle(std::exchange(reduced_, Ticket{}));
}

}  // namespace lockstep
