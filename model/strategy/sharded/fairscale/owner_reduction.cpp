#include "model/strategy/sharded/fairscale/owner_reduction.hpp"

#include <algorithm>
#include <utility>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/gradient_order.hpp"
#include "model/strategy/sharded/fairscale/fairscale_sites.hpp"

namespace lockstep {

OwnerReduction::OwnerReduction(Replica& replica, std::vector<int32_t> owners,
                               const OwnerReductionOptions& options)
    : replica_(&replica), owners_(std::move(owners)), options_(options) {
  bucket_of_.resize(owners_.size());
}

// Buckets

void OwnerReduction::allocate(Rank& rank) {
  if (options_.bucket_elements == 0) {
    return;
  }
  assign_buckets();
  for (Bucket& bucket : buckets_) {
    int64_t elements = 0;
    for (const size_t index : bucket.parameters) {
      elements += replica_->parameters()[index].tensor.value.elements;
    }
    const DType dtype = replica_->plan().parameter_dtype;
    bucket.flat = rank.allocate(Purpose::communication, dtype, elements);
    elementwise(rank, Kernel::fill, {}, {bucket.flat}, 0,
                {compute_stream, {}, site_id(fairscale_sites::fill_bucket)});
    make_views(bucket);
  }
}

// _setup_bucket_strategy: a bucket for each owner, into which its smallest parameters go first, as
// long as one element is left over.
void OwnerReduction::assign_buckets() {
  const std::vector<Replica::Parameter>& parameters = replica_->parameters();
  const auto elements_of = [&](size_t index) { return parameters[index].tensor.value.elements; };
  std::vector<size_t> by_size;
  int64_t all_elements = 0;
  for (size_t index = 0; index < parameters.size(); ++index) {
    all_elements += elements_of(index);
    if (parameters[index].trainable) {
      by_size.push_back(index);
    }
  }
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return elements_of(a) < elements_of(b); });
  const int64_t most = std::min(options_.bucket_elements, all_elements);
  std::vector<int64_t> filled;
  for (const size_t index : by_size) {
    auto bucket = std::ranges::find(buckets_, owners_[index], &Bucket::owner);
    if (bucket == buckets_.end()) {
      buckets_.push_back({owners_[index], {}, {}, 0, false});
      filled.push_back(0);
      bucket = std::prev(buckets_.end());
    }
    const auto number = static_cast<size_t>(bucket - buckets_.begin());
    if (filled[number] + elements_of(index) < most) {
      filled[number] += elements_of(index);
      bucket->parameters.push_back(index);
      bucket_of_[index] = number;
    }
  }
}

void OwnerReduction::make_views(Bucket& bucket) {
  int64_t begin = 0;
  for (const size_t index : bucket.parameters) {
    Replica::Parameter& parameter = replica_->parameters()[index];
    const int64_t elements = parameter.tensor.value.elements;
    parameter.tensor.gradient = bucket.flat.part(begin, elements);
    parameter.gradient_is_view = true;
    begin += elements;
  }
}

void OwnerReduction::release(Rank& rank) {
  for (Bucket& bucket : buckets_) {
    for (const size_t index : bucket.parameters) {
      Replica::Parameter& parameter = replica_->parameters()[index];
      if (parameter.gradient_is_view) {
        replica_->forget_gradient(rank, parameter);
      }
    }
    rank.release(bucket.flat);
  }
  buckets_.clear();
}

// One backward

void OwnerReduction::begin(Rank&, bool synchronise) {
  synchronises_ = synchronise;
  reduces_twice_ = reduces_twice_ || (synchronise && has_reduced_);
  has_reduced_ = has_reduced_ || synchronise;
  for (Bucket& bucket : buckets_) {
    bucket.ready = 0;
    bucket.sent = false;
  }
}

void OwnerReduction::gradients_ready(Rank& rank, size_t layer, Ticket done) {
  if (!synchronises_) {
    return;  // no_sync: gradients accumulate on this rank
  }
  for (const size_t index : in_order_of_gradients(*replica_, layer)) {
    if (!replica_->wants_gradient(replica_->parameters()[index])) {
      continue;
    }
    if (!bucket_of_[index]) {
      send(rank, index, done);
      continue;
    }
    Bucket& bucket = buckets_[*bucket_of_[index]];
    if (++bucket.ready == bucket.parameters.size()) {
      send(rank, bucket, done);
    }
  }
}

// The mean: each rank divides before the sum.
Ticket OwnerReduction::scale(Rank& rank, const Slice& gradient, Ticket done) {
  return elementwise(rank, Kernel::scale, {}, {gradient}, 1.0 / rank.world_size(),
                     {compute_stream, {done}, site_id(fairscale_sites::scale_gradient)});
}

void OwnerReduction::send(Rank& rank, Bucket& bucket, Ticket done) {
  bucket.sent = true;
  for (const size_t index : bucket.parameters) {
    sends_old_gradients_ = sends_old_gradients_ || !replica_->parameters()[index].gradient_is_view;
  }
  const Ticket scaled = scale(rank, bucket.flat, done);
  exchanged_ =
      rank.reduce(world_group, bucket.flat, Reduction::sum, bucket.owner,
                  {communication_stream, {scaled}, site_id(fairscale_sites::reduce_bucket)});
  exchanged_bytes_.push_back(bucket.flat.bytes());
}

void OwnerReduction::send(Rank& rank, size_t parameter, Ticket done) {
  const Slice gradient = replica_->parameters()[parameter].tensor.gradient;
  InFlight sent{parameter, {}, {}};
  Ticket ready = scale(rank, gradient, done);
  if (options_.in_half_precision && gradient.dtype != DType::fp16) {
    sent.narrow = rank.allocate(Purpose::communication, DType::fp16, gradient.elements);
    ready = elementwise(rank, Kernel::cast, {gradient}, {sent.narrow}, 0,
                        {compute_stream, {}, site_id(fairscale_sites::scale_gradient)});
  }
  const Slice travels = sent.narrow.buffer == no_buffer ? gradient : sent.narrow;
  sent.reduced =
      rank.reduce(world_group, travels, Reduction::sum, owners_[parameter],
                  {communication_stream, {ready}, site_id(fairscale_sites::reduce_gradient)});
  exchanged_ = sent.reduced;
  exchanged_bytes_.push_back(travels.bytes());
  in_flight_.push_back(sent);
}

// Buckets that did not fill go too; then owners have their gradients, and the others drop theirs.
Program OwnerReduction::finish(Rank& rank) {
  if (!synchronises_) {
    co_return;
  }
  for (Bucket& bucket : buckets_) {
    if (!bucket.sent) {
      send(rank, bucket, {});
    }
  }
  if (exchanged_) {
    rank.event({compute_stream, {exchanged_}, site_id(fairscale_sites::wait_for_reductions)});
  }
  for (const InFlight& sent : std::exchange(in_flight_, {})) {
    Replica::Parameter& parameter = replica_->parameters()[sent.parameter];
    const bool owns = owners_[sent.parameter] == rank.id();
    if (owns && sent.narrow.buffer != no_buffer) {
      elementwise(rank, Kernel::cast, {sent.narrow}, {parameter.tensor.gradient}, 0,
                  {compute_stream, {}, site_id(fairscale_sites::wait_for_reductions)});
    }
    if (sent.narrow.buffer != no_buffer) {
      rank.release(sent.narrow);
    }
    if (!owns) {
      replica_->forget_gradient(rank, parameter);
    }
  }
}

Program OwnerReduction::settle(Rank& rank) {
  co_await rank.settle(std::exchange(exchanged_, Ticket{}));
}

}  // namespace lockstep
