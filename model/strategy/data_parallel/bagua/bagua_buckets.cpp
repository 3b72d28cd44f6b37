#include "model/strategy/data_parallel/bagua/bagua_buckets.hpp"

#include <algorithm>
#include <utility>

#include "model/strategy/data_parallel/bagua/bagua_sites.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

using namespace bagua_sites;

Program BaguaExchange::forward_begins(Rank&, bool) { co_return; }
Program BaguaExchange::step_taken(Rank&, size_t) { co_return; }

BucketAssignment bagua_buckets(const Replica& replica, Bytes bucket_size) {
  std::vector<BucketedTensor> tensors;
  std::vector<size_t> order;
  for (const Replica::Parameter& parameter : replica.parameters()) {
    const int64_t elements = replica.network().parameter(parameter.place).elements();
    const DType dtype = replica.plan().parameter_dtype;
    tensors.push_back({dtype, Bytes(size_of(dtype)) * elements});
    if (parameter.trainable) {
      order.push_back(tensors.size() - 1);
    }
  }
  std::reverse(order.begin(), order.end());
  return assign_buckets(tensors, order, {&bucket_size, 1});
}

BaguaBuckets::BaguaBuckets(Replica& replica, const Options& options,
                           std::unique_ptr<BucketOperation> operation)
    : replica_(&replica), options_(options), operation_(std::move(operation)) {}

Slice& BaguaBuckets::tensor_of(size_t parameter) const {
  OptimizedTensor& tensor = replica_->parameters()[parameter].tensor;
  return holds_moments() ? tensor.state.at(0) : tensor.gradient;
}

void BaguaBuckets::prepare(Rank& rank) {
  members_.resize(replica_->parameters().size());
  for (const std::vector<size_t>& parameters : bagua_buckets(*replica_, options_.bucket_size)) {
    Bucket bucket;
    bucket.parameters = parameters;
    bucket.is_ready.resize(parameters.size(), false);
    for (size_t part = 0; part < parameters.size(); ++part) {
      members_[parameters[part]] = {buckets_.size(), part};
      bucket.elements += replica_->parameters()[parameters[part]].tensor.value.elements;
    }
    const int64_t alignment = operation_->alignment();
    bucket.elements = (bucket.elements + alignment - 1) / alignment * alignment;
    if (options_.flatten) {
      flatten(rank, bucket);
    }
    buckets_.push_back(std::move(bucket));
  }
  if (!options_.flatten) {
    replica_->state().fill_missing_gradients(rank);  // bagua_ensure_grad
  }
}

// Tensors become views. Those that are None begin as zeros.
void BaguaBuckets::flatten(Rank& rank, Bucket& bucket) {
  const DType dtype = replica_->parameters()[bucket.parameters.front()].tensor.value.dtype;
  bucket.flat = rank.allocate(holds_moments() ? Purpose::optimizer_state : Purpose::gradient, dtype,
                              bucket.elements);
  elementwise(rank, Kernel::fill, {}, {bucket.flat}, 0, {}, site_id(fill_bucket));
  std::vector<Slice> own;
  std::vector<Slice> parts;
  int64_t begin = 0;
  for (const size_t index : bucket.parameters) {
    Replica::Parameter& parameter = replica_->parameters()[index];
    const Slice part = bucket.flat.part(begin, parameter.tensor.value.elements);
    begin += part.elements;
    bucket.parts.push_back(part);
    if (tensor_of(index).buffer != no_buffer) {
      own.push_back(tensor_of(index));
      parts.push_back(part);
    }
  }
  if (!own.empty()) {
    copy_each(rank, own, parts, {compute_stream, {}, site_id(fill_bucket)});
  }
  for (size_t part = 0; part < bucket.parameters.size(); ++part) {
    become_view(rank, bucket.parameters[part], bucket.parts[part]);
  }
}

void BaguaBuckets::become_view(Rank& rank, size_t index, const Slice& part) {
  Replica::Parameter& parameter = replica_->parameters()[index];
  if (holds_moments()) {
    rank.release(std::exchange(parameter.tensor.state.at(0), part));
    return;
  }
  replica_->forget_gradient(rank, parameter);
  parameter.tensor.gradient = part;
  parameter.gradient_is_view = true;
}

void BaguaBuckets::begin(Rank&, bool synchronise) { synchronises_ = synchronise; }

void BaguaBuckets::gradients_ready(Rank& rank, size_t layer, Ticket done) {
  if (!synchronises_) {
    return;
  }
  for (const size_t index : replica_->trainable_of(layer)) {
    if (!replica_->wants_gradient(replica_->parameters()[index])) {
      continue;
    }
    const Member member = members_[index];
    Bucket& bucket = buckets_[member.bucket];
    bucket.ready = done;
    if (options_.flatten && !holds_moments()) {
      // zero_grad has made it None: a new one takes its place in the bucket again.
      const Slice gradient = replica_->parameters()[index].tensor.gradient;
      if (gradient != bucket.parts[member.part]) {
        bucket.ready = copy_each(rank, {gradient}, {bucket.parts[member.part]},
                                 {compute_stream, {done}, site_id(fill_bucket)});
        become_view(rank, index, bucket.parts[member.part]);
      }
    }
    bucket.is_ready[member.part] = true;
  }
  exchange_ready_buckets(rank);
}

void BaguaBuckets::exchange_ready_buckets(Rank& rank) {
  const auto is_full = [](const Bucket& bucket) {
    return std::ranges::all_of(bucket.is_ready, [](bool ready) { return ready; });
  };
  while (!buckets_.empty() && is_full(buckets_[next_])) {
    Bucket& bucket = buckets_[next_];
    last_exchange_ = exchange(rank, bucket);
    bucket.is_ready.assign(bucket.is_ready.size(), false);
    next_ = (next_ + 1) % buckets_.size();
  }
}

// m = beta1 m + (1 - beta1) g
void BaguaBuckets::make_moments(Rank& rank, const Bucket& bucket) const {
  const double beta1 = options_.moments_of->beta1;
  std::vector<Slice> gradients;
  for (const size_t index : bucket.parameters) {
    gradients.push_back(replica_->parameters()[index].tensor.gradient);
  }
  const ComputeOptions options{communication_stream, {bucket.ready}, site_id(momentum)};
  elementwise(rank, Kernel::scale, {}, bucket.parts, beta1, options);
  elementwise(rank, Kernel::add_scaled, gradients, bucket.parts, 1 - beta1,
              {communication_stream, {}, site_id(momentum)});
}

Ticket BaguaBuckets::exchange(Rank& rank, const Bucket& bucket) {
  if (options_.flatten) {
    if (holds_moments()) {
      make_moments(rank, bucket);
    }
    exchanged_bytes_.push_back(operation_->bytes_of(bucket.flat));
    return operation_->run(rank, bucket.flat, bucket.ready);
  }
  const SiteId site = site_id(fill_bucket);
  std::vector<Slice> tensors;
  for (const size_t index : bucket.parameters) {
    tensors.push_back(tensor_of(index));
  }
  const Slice flat = rank.allocate(Purpose::communication, tensors.front().dtype, bucket.elements,
                                   DeviceId{0}, queue::communication);
  const Ticket filled = copy_each(rank, tensors, parts_of(flat, tensors),
                                  {communication_stream, {bucket.ready}, site});
  operation_->run(rank, flat, filled);
  const Ticket done =
      copy_each(rank, parts_of(flat, tensors), tensors, {communication_stream, {}, site});
  exchanged_bytes_.push_back(operation_->bytes_of(flat));
  rank.release(flat);
  return done;
}

Program BaguaBuckets::finish(Rank& rank) {
  if (last_exchange_) {
    in_flight_ = rank.event({compute_stream, {last_exchange_}, site_id(wait_for_buckets)});
    last_exchange_ = {};
  }
  co_return;
}

Program BaguaBuckets::settle(Rank& rank) { co_await rank.settle(std::exchange(in_flight_, {})); }

// Moments move into memory of their own, which outlives the fit.
Program BaguaBuckets::end(Rank& rank) {
  co_await settle(rank);
  for (Bucket& bucket : buckets_) {
    for (size_t part = 0; part < bucket.parts.size(); ++part) {
      Replica::Parameter& parameter = replica_->parameters()[bucket.parameters[part]];
      if (holds_moments()) {
        const Slice own =
            rank.allocate(Purpose::optimizer_state, bucket.flat.dtype, bucket.parts[part].elements);
        copy_each(rank, {bucket.parts[part]}, {own},
                  {compute_stream, {}, site_id(wait_for_buckets)});
        parameter.tensor.state.at(0) = own;
      } else {
        replica_->forget_gradient(rank, parameter);
      }
    }
    if (bucket.flat.buffer != no_buffer) {
      rank.release(std::exchange(bucket.flat, {}));
    }
  }
  buckets_.clear();
}

}  // namespace lockstep
