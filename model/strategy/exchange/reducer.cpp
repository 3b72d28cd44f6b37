#include "model/strategy/exchange/reducer.hpp"

#include <algorithm>
#include <numeric>

#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/gradient_order.hpp"

namespace lockstep {

using namespace ddp_sites;

Reducer::Reducer(Replica& replica, const ReducerOptions& options, BucketHook* hook)
    : replica_(&replica), options_(options), hook_(hook) {}

// Into the buckets

void Reducer::raise_if_unfinished() const {
  if (unfinished_) {
    throw ProgramException(
        site_id(reduce_bucket),
        "expected to have finished reduction in the prior iteration: some parameters got no "
        "gradient, so their bucket was never reduced; use find_unused_parameters: true, or use "
        "every parameter in the loss");
  }
}

void Reducer::prepare_for_backward() {
  ++iterations_;
  wants_gradients_ = true;
  marked_unused_ = false;
  empty_buckets();
  if (finds_unused()) {
    std::vector<bool> ran(replica_->network().layers.size(), false);
    for (const size_t layer : replica_->forwards().layers_of_backward()) {
      ran[layer] = true;
    }
    unused_.clear();
    std::copy_if(trainable_.begin(), trainable_.end(), std::back_inserter(unused_),
                 [&](size_t index) {
                   const Replica::Parameter& parameter = replica_->parameters()[index];
                   return !ran[parameter.place.layer] || !replica_->wants_gradient(parameter);
                 });
  }
}

void Reducer::empty_buckets() {
  next_bucket_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.pending = bucket.parameters.size();
    bucket.filled = Ticket{};
    bucket.reduced = Ticket{};
  }
  for (Place& place : places_) {
    place.is_put = false;
  }
}

void Reducer::gradients_ready(Rank& rank, size_t layer, Ticket done) {
  std::vector<size_t> parameters = in_order_of_gradients(*replica_, layer);
  std::erase_if(parameters, [&](size_t index) {
    return !replica_->wants_gradient(replica_->parameters()[index]);
  });
  if (parameters.empty()) {
    return;
  }
  const bool counts = wants_gradients_ || replica_->plan().counts_use_under_no_sync;
  for (const size_t index : parameters) {
    if ((finds_unused() && counts) || is_first_static() || is_before_first_static()) {
      used_here_[places_[index].position] = true;
    }
  }
  if (!wants_gradients_ || is_first_static()) {
    return;
  }
  if (!std::exchange(marked_unused_, true)) {
    put(rank, unused_, {});
  }
  raise_if_graph_changed(parameters);
  if (may_rebuild()) {
    for (const size_t index : parameters) {
      ready_order_.push_back(places_[index].position);
    }
  }
  put(rank, parameters, done);
}

void Reducer::raise_if_graph_changed(const std::vector<size_t>& parameters) const {
  const auto was_unused = [this](size_t index) {
    return std::find(unused_.begin(), unused_.end(), index) != unused_.end();
  };
  if (options_.static_graph && std::any_of(parameters.begin(), parameters.end(), was_unused)) {
    throw ProgramException(site_id(fill_bucket),
                           "static_graph: a parameter that the first iteration left unused has a "
                           "gradient now; use find_unused_parameters instead");
  }
}

Ticket Reducer::put_by(Rank& rank, Kernel kernel, const std::vector<Slice>& reads,
                       const std::vector<Slice>& writes, Ticket done) {
  const double scalar = kernel == Kernel::fill ? 0.0 : 1 / divisor_;
  KernelCall call;
  call.kernel = kernel;
  call.reads = reads;
  call.writes = writes;
  call.scalars = {&scalar, 1};
  call.memory_traffic = total_bytes(writes) * (kernel == Kernel::fill ? 1 : 2);
  return rank.compute(call, {replica_->compute(), {done}, site_id(fill_bucket)});
}

// A gradient goes into its slice times 1 / W, or as it is where a hook divides; without one the
// slice is zeros. The buckets that this fills are launched.
void Reducer::put(Rank& rank, const std::vector<size_t>& parameters, Ticket done) {
  if (parameters.empty()) {
    return;
  }
  unfinished_ = true;  // until the last bucket has gone
  std::vector<Slice> gradients;
  std::vector<Slice> copies;
  std::vector<Slice> views;
  std::vector<Slice> zeros;
  for (const size_t index : parameters) {
    Place& place = places_[index];
    if (std::exchange(place.is_put, true)) {
      throw ProgramException(
          site_id(fill_bucket),
          "expected to mark a variable ready only once: an earlier backward of this step has its "
          "gradient in a bucket that is not full, and no_sync does not end that; use "
          "find_unused_parameters: true, or use every parameter in each synchronised loss");
    }
    Replica::Parameter& parameter = replica_->parameters()[index];
    const Slice& part = buckets_[place.bucket].parts[place.part];
    const Slice gradient = parameter.tensor.gradient;
    if (gradient.buffer == no_buffer) {
      zeros.push_back(part);
    } else if (gradient == part) {
      views.push_back(part);
    } else {
      gradients.push_back(gradient);
      copies.push_back(part);
    }
  }
  Ticket filled = done;
  const auto fill = [&](Kernel kernel, const std::vector<Slice>& reads,
                        const std::vector<Slice>& writes) {
    filled = writes.empty() ? filled : put_by(rank, kernel, reads, writes, done);
  };
  if (hook_ != nullptr) {
    fill(Kernel::copy, gradients, copies);
  } else {
    fill(Kernel::scale, gradients, copies);
    fill(Kernel::scale, {}, views);
  }
  fill(Kernel::fill, {}, zeros);
  for (const size_t index : parameters) {
    Bucket& bucket = buckets_[places_[index].bucket];
    --bucket.pending;
    bucket.filled = filled;
    Replica::Parameter& parameter = replica_->parameters()[index];
    if (options_.gradient_as_bucket_view && parameter.tensor.gradient.buffer != no_buffer) {
      make_view(rank, index);
    }
  }
  launch_full_buckets(rank);
}

// The gradient is its part of the bucket from now on; its own memory goes.
void Reducer::make_view(Rank& rank, size_t index) {
  Replica::Parameter& parameter = replica_->parameters()[index];
  replica_->forget_gradient(rank, parameter);
  parameter.tensor.gradient = buckets_[places_[index].bucket].parts[places_[index].part];
  parameter.gradient_is_view = true;
}

// Strictly in bucket order, whatever order they fill in.
void Reducer::launch_full_buckets(Rank& rank) {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0) {
    const size_t index = next_bucket_++;
    buckets_[index].reduced = exchange(rank, index);
  }
}

Ticket Reducer::exchange(Rank& rank, size_t index) {
  Bucket& bucket = buckets_[index];
  if (hook_ == nullptr) {
    reduced_bytes_.push_back(bucket.flat.bytes());
    return rank.all_reduce(group_.group, bucket.flat, Reduction::sum,
                           {group_.on, {bucket.filled}, site_id(reduce_bucket)});
  }
  FullBucket full{.index = index,
                  .is_last = index + 1 == buckets_.size(),
                  .is_alone = buckets_.size() == 1 && !finds_unused(),
                  .flat = bucket.flat,
                  .parts = bucket.parts,
                  .rows = {},
                  .filled = bucket.filled};
  for (const size_t parameter : bucket.parameters) {
    const ParameterPlace place = replica_->parameters()[parameter].place;
    full.rows.push_back(replica_->network().parameter(place).shape.front());
  }
  const Ticket reduced = hook_->start(rank, full);
  const std::vector<Bytes> messages = hook_->take_messages();
  reduced_bytes_.insert(reduced_bytes_.end(), messages.begin(), messages.end());
  return reduced;
}

Program Reducer::reduce_used_map(Rank& rank) {
  co_await rank.settle(used_map_reduced_);  // of the iteration before
  Values map(DType::int32, used_map_.elements);
  for (size_t position = 0; position < trainable_.size(); ++position) {
    map.set_integer(static_cast<int64_t>(position), used_here_[position] ? 1 : 0);
  }
  rank.write(used_map_, map);
  launch_used_map(rank);
}

void Reducer::launch_used_map(Rank& rank) {
  used_map_reduced_ = rank.all_reduce(group_.group, used_map_, Reduction::sum,
                                      {group_.on, {}, site_id(reduce_map)});
}

// Out of the buckets

Program Reducer::finish(Rank& rank) {
  if (!wants_gradients_) {
    co_return;
  }
  if (is_first_static()) {
    co_await reduce_first_static(rank);
  }
  if (next_bucket_ < buckets_.size()) {
    // A parameter got no gradient: nobody waits, and local gradients are used as they are. The
    // next backward under no_sync may produce it.
    co_return;
  }
  wants_gradients_ = false;
  unfinished_ = false;
  if (finds_unused()) {
    co_await reduce_used_map(rank);
  }
  if (options_.static_graph && may_rebuild() && !ready_order_.empty()) {
    for (const size_t index : unused_) {
      ready_order_.push_back(places_[index].position);
    }
  }
  co_await learn_usage(rank);
  if (hook_ != nullptr) {
    co_await hook_->finish(rank);
  }
  exchanged_.clear();
  for (Bucket& bucket : buckets_) {
    exchanged_.push_back(take_out(rank, bucket));
  }
  free_outlived(rank);
  if (finds_unused()) {
    std::fill(used_here_.begin(), used_here_.end(), false);
  }
}

// Which parameters count is known only when the backward has ended: the map goes first, then all
// buckets.
Program Reducer::reduce_first_static(Rank& rank) {
  co_await reduce_used_map(rank);
  for (const size_t index : trainable_) {
    if (!used_here_[places_[index].position]) {
      unused_.push_back(index);
    }
  }
  put(rank, trainable_, {});
}

Program Reducer::refuse_first_static(Rank& rank) {
  if (!is_before_first_static()) {
    co_return;
  }
  empty_buckets();
  co_await reduce_first_static(rank);
  throw ProgramException(site_id(reduce_bucket),
                         "static_graph exchanges gradients in its first backward, and torch then "
                         "fails where that is inside no_sync; leave no_sync for later ones");
}

// The host waits for the map only where this rank left something unused.
Program Reducer::learn_usage(Rank& rank) {
  if (!finds_unused() && !is_first_static()) {
    co_return;
  }
  used_anywhere_ = used_here_;
  if (std::find(used_here_.begin(), used_here_.end(), false) == used_here_.end()) {
    co_return;
  }
  co_await rank.settle(used_map_reduced_);
  const Values map = rank.read(used_map_);
  for (size_t position = 0; position < trainable_.size(); ++position) {
    used_anywhere_[position] = map.integer(static_cast<int64_t>(position)) != 0;
  }
}

// The averages become the gradients; what no rank used keeps its own, or stays None.
Ticket Reducer::take_out(Rank& rank, Bucket& bucket) {
  std::vector<Slice> gradients;
  std::vector<Slice> parts;
  for (size_t part = 0; part < bucket.parameters.size(); ++part) {
    const size_t index = bucket.parameters[part];
    if (!used_anywhere_[places_[index].position]) {
      continue;
    }
    Replica::Parameter& parameter = replica_->parameters()[index];
    if (options_.gradient_as_bucket_view) {
      make_view(rank, index);
      continue;
    }
    replica_->state().ensure_gradient(rank, parameter);
    gradients.push_back(parameter.tensor.gradient);
    parts.push_back(bucket.parts[part]);
  }
  const ComputeOptions after_reduction{
      replica_->compute(), {bucket.reduced}, site_id(empty_bucket)};
  return gradients.empty() ? rank.event(after_reduction)
                           : copy_each(rank, parts, gradients, after_reduction);
}

Program Reducer::settle(Rank& rank) {
  co_await rank.settle_all(exchanged_);
  exchanged_.clear();
  co_await rank.settle(used_map_reduced_);
}

// Join

Program Reducer::reduce_zeros(Rank& rank) {
  std::vector<Slice> zeros;
  std::vector<Ticket> reduced;
  for (const Bucket& bucket : buckets_) {
    const double zero = 0;
    zeros.push_back(rank.allocate(Purpose::communication, bucket.flat.dtype, bucket.flat.elements));
    KernelCall call;
    call.kernel = Kernel::fill;
    call.writes = {&zeros.back(), 1};
    call.scalars = {&zero, 1};
    call.memory_traffic = bucket.flat.bytes();
    const Ticket filled = rank.compute(call, {replica_->compute(), {}, site_id(fill_bucket)});
    reduced.push_back(rank.all_reduce(group_.group, zeros.back(), Reduction::sum,
                                      {group_.on, {filled}, site_id(reduce_bucket)}));
  }
  co_await rank.settle_all(reduced);
  for (const Slice& each : zeros) {
    rank.release(each);
  }
  if (options_.find_unused_parameters) {  // whatever static_graph says, as torch does
    // As the last reduction left it: what was used then counts as used now.
    co_await rank.settle(used_map_reduced_);
    launch_used_map(rank);
    co_await rank.settle(used_map_reduced_);
  }
  // Its own order does not matter: rank 0's counts.
  if (may_rebuild() && ready_order_.empty()) {
    ready_order_.resize(trainable_.size());
    std::iota(ready_order_.begin(), ready_order_.end(), size_t{0});
  }
}

}  // namespace lockstep
