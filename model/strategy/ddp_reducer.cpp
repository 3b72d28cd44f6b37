// The reducer of DDP: buckets, the order in which they fill and go, what comes back out of them.
#include <algorithm>

#include "model/strategy/ddp.hpp"
#include "model/strategy/ddp_sites.hpp"

namespace lockstep {

using namespace ddp_sites;

void DistributedDataParallel::make_buckets(Rank& rank, const BucketAssignment& assignment) {
  std::vector<Bucket> made;
  place_of_.assign(replica_.parameters().size(), {0, 0});
  for (const std::vector<size_t>& tensors : assignment) {
    Bucket& bucket = made.emplace_back();
    int64_t elements = 0;
    for (const size_t tensor : tensors) {
      elements += replica_.parameters()[trainable_[tensor]].tensor.value.elements;
    }
    const DType dtype = replica_.parameters()[trainable_[tensors.front()]].tensor.value.dtype;
    bucket.flat =
        rank.allocate(options_.gradient_as_bucket_view ? Purpose::gradient : Purpose::communication,
                      dtype, elements);
    int64_t begin = 0;
    for (const size_t tensor : tensors) {
      Replica::Parameter& parameter = replica_.parameters()[trainable_[tensor]];
      place_of_[trainable_[tensor]] = {made.size() - 1, bucket.parameters.size()};
      bucket.parameters.push_back(trainable_[tensor]);
      bucket.parts.push_back(bucket.flat.part(begin, parameter.tensor.value.elements));
      begin += parameter.tensor.value.elements;
      if (options_.gradient_as_bucket_view) {
        parameter.tensor.gradient = bucket.parts.back();
        parameter.gradient_is_view = true;
      }
    }
  }
  std::swap(buckets_, made);
  free_buckets(rank, std::move(made));  // the new ones exist before the old ones go
}

void DistributedDataParallel::free_buckets(Rank& rank, std::vector<Bucket> buckets) {
  for (const Bucket& bucket : buckets) {
    rank.release(bucket.flat);
  }
}

void DistributedDataParallel::prepare_for_backward() {
  for (Bucket& bucket : buckets_) {
    bucket.pending = bucket.parameters.size();
    bucket.packed = Ticket{};
    bucket.reduced = Ticket{};
  }
  next_bucket_ = 0;
  delay_reduction_ = options_.static_graph && record_order_;
}

// With find_unused_parameters, what no layer of this forward uses counts as ready: zeros.
void DistributedDataParallel::mark_unused_ready(Rank& rank) {
  std::vector<bool> ran(replica_.network().layers.size());
  for (const size_t layer : replica_.layers_last_to_first()) {
    ran[layer] = true;
  }
  std::vector<size_t> never;
  std::vector<size_t> earlier;  // in the accumulation window: what it has gathered counts
  for (const size_t index : trainable_) {
    if (!ran[replica_.parameters()[index].place.layer]) {
      (used_[index] ? earlier : never).push_back(index);
    }
  }
  mark_ready(rank, never, false, {});
  mark_ready(rank, earlier, true, {});
}

void DistributedDataParallel::mark_layer_ready(Rank& rank, size_t layer, Ticket done) {
  std::vector<size_t> parameters = replica_.trainable_of(layer);
  std::reverse(parameters.begin(), parameters.end());  // the bias comes before the weight
  mark_ready(rank, parameters, true, done);
}

// Puts gradients, times 1 / W, into their slices; launches the buckets that this fills.
void DistributedDataParallel::mark_ready(Rank& rank, const std::vector<size_t>& parameters,
                                         bool used, Ticket done) {
  if (parameters.empty()) {
    return;
  }
  backward_unfinished_ = true;  // until the last bucket has gone
  std::vector<Slice> gradients;
  std::vector<Slice> parts;
  Bytes moved{};
  for (const size_t index : parameters) {
    const auto [bucket, part] = place_of_[index];
    gradients.push_back(replica_.parameters()[index].tensor.gradient);
    parts.push_back(buckets_[bucket].parts[part]);
    moved += parts.back().bytes() * 2;
    if (record_order_) {
      ready_order_.push_back(position_of_[index]);
    }
  }
  const double factor = used ? gradient_factor(rank) : 0.0;
  KernelCall call;
  call.kernel = used ? Kernel::scale : Kernel::fill;
  if (used && !options_.gradient_as_bucket_view) {
    call.reads = gradients;
  }
  call.writes = parts;
  call.scalars = {&factor, 1};
  call.memory_traffic = moved;
  const Ticket packed = rank.compute(call, {replica_.compute(), {done}, site_id(fill_bucket)});
  for (const size_t index : parameters) {
    Bucket& bucket = buckets_[place_of_[index].first];
    --bucket.pending;
    bucket.packed = packed;
  }
  if (!delay_reduction_) {
    launch_full_buckets(rank);
  }
}

// Strictly in bucket order, whatever order they fill in.
void DistributedDataParallel::launch_full_buckets(Rank& rank) {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0) {
    Bucket& bucket = buckets_[next_bucket_++];
    bucket.reduced =
        rank.all_reduce(world_group, bucket.flat, Reduction::sum,
                        {communication_stream, {bucket.packed}, site_id(reduce_bucket)});
  }
}

void DistributedDataParallel::reduce_used_map(Rank& rank) {
  Values map(DType::int32, used_map_.elements);
  for (size_t i = 0; i < trainable_.size(); ++i) {
    map.set_integer(static_cast<int64_t>(i), used_[trainable_[i]] ? 1 : 0);
  }
  rank.write(used_map_, map);
  used_map_reduced_ = rank.all_reduce(world_group, used_map_, Reduction::sum,
                                      {communication_stream, {}, site_id(reduce_map)});
}

Program DistributedDataParallel::finish_reduction(Rank& rank) {
  if (used_map_.buffer != no_buffer && (options_.find_unused_parameters || delay_reduction_)) {
    co_await rank.settle(used_map_reduced_);  // of the iteration before
    reduce_used_map(rank);                    // 9
  }
  if (delay_reduction_) {
    std::vector<size_t> unused;
    for (const size_t index : trainable_) {
      if (!used_[index]) {
        unused.push_back(index);
      }
    }
    mark_ready(rank, unused, false, {});
    launch_full_buckets(rank);
  }
  if (next_bucket_ < buckets_.size()) {
    // A parameter got no gradient: this rank skips the wait and goes on with local gradients.
    std::fill(used_.begin(), used_.end(), false);
    co_return;
  }
  backward_unfinished_ = false;
  rebuild_due_ = record_order_ && (!options_.find_unused_parameters || options_.static_graph);
  record_order_ = false;

  co_await unpack_buckets(rank);
  std::fill(used_.begin(), used_.end(), false);
}

// The averages become the gradients. A parameter that no rank used keeps its own.
Program DistributedDataParallel::unpack_buckets(Rank& rank) {
  Values used_somewhere;
  const bool some_unused = std::any_of(trainable_.begin(), trainable_.end(),
                                       [this](size_t index) { return !used_[index]; });
  if (some_unused && used_map_.buffer != no_buffer) {
    co_await rank.settle(used_map_reduced_);
    used_somewhere = rank.read(used_map_);
  }
  for (Bucket& bucket : buckets_) {
    std::vector<Slice> gradients;
    std::vector<Slice> parts;
    Bytes moved{};
    for (size_t part = 0; part < bucket.parameters.size(); ++part) {
      const size_t index = bucket.parameters[part];
      const auto position = static_cast<int64_t>(position_of_[index]);
      if (options_.gradient_as_bucket_view ||
          (!used_somewhere.empty() && used_somewhere.integer(position) == 0)) {
        continue;
      }
      replica_.ensure_gradient(rank, replica_.parameters()[index]);
      gradients.push_back(replica_.parameters()[index].tensor.gradient);
      parts.push_back(bucket.parts[part]);
      moved += parts.back().bytes() * 2;
    }
    if (gradients.empty()) {
      exchanged_.push_back(bucket.reduced);
      continue;
    }
    KernelCall call;
    call.kernel = Kernel::copy;
    call.reads = parts;
    call.writes = gradients;
    call.memory_traffic = moved;
    exchanged_.push_back(
        rank.compute(call, {replica_.compute(), {bucket.reduced}, site_id(empty_bucket)}));
  }
}

double DistributedDataParallel::gradient_factor(const Rank& rank) const {
  const int64_t ranks = options_.divide_by_initial_world_size ? rank.world_size() : active_ranks_;
  return 1.0 / static_cast<double>(ranks);
}

BucketAssignment DistributedDataParallel::bucket_assignment() const {
  BucketAssignment assignment;
  for (const Bucket& bucket : buckets_) {
    assignment.push_back(bucket.parameters);
  }
  return assignment;
}

}  // namespace lockstep
