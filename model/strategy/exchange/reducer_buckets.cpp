// The reducer's buckets: which parameters share one, in the first iteration and after it.
#include <algorithm>

#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/exchange/reducer.hpp"

namespace lockstep {

using namespace ddp_sites;

namespace {

constexpr Bytes default_cap{25 * 1024 * 1024};
constexpr Bytes first_bucket_cap{1024 * 1024};

// The data of rank 0 may have been corrupted on the way.
std::vector<size_t> order_in(const Values& received, int64_t count) {
  std::vector<size_t> order;
  std::vector<bool> named(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(received.integer(i));  // a negative one is too large
    if (index >= named.size() || named[index]) {
      throw ProgramException(site_id(send_order),
                             "the order of gradients that rank 0 has sent is none");
    }
    named[index] = true;
    order.push_back(index);
  }
  return order;
}

}  // namespace

void Reducer::allocate(Rank& rank) {
  places_.resize(replica_->parameters().size());
  for (size_t index = 0; index < replica_->parameters().size(); ++index) {
    if (replica_->parameters()[index].trainable && group_.reduces(*replica_, index)) {
      places_[index].position = trainable_.size();
      trainable_.push_back(index);
    }
  }
  used_here_.assign(trainable_.size(), false);
  used_anywhere_.assign(trainable_.size(), true);
  if (options_.find_unused_parameters || options_.static_graph) {
    used_map_ = rank.allocate(Purpose::metric, DType::int32, std::ssize(trainable_));
  }
  make_buckets(rank, first_assignment());
}

void Reducer::release(Rank& rank) {
  for (Replica::Parameter& parameter : replica_->parameters()) {
    if (parameter.gradient_is_view) {
      replica_->forget_gradient(rank, parameter);
    }
  }
  free_outlived(rank);
  for (const Bucket& bucket : buckets_) {
    rank.release(bucket.flat);
  }
  if (used_map_.buffer != no_buffer) {
    rank.release(used_map_);
  }
}

std::vector<BucketedTensor> Reducer::bucketed_tensors() const {
  std::vector<BucketedTensor> tensors;
  for (const size_t index : trainable_) {
    const Slice& value = replica_->parameters()[index].tensor.value;
    tensors.push_back({value.dtype, value.bytes()});
  }
  return tensors;
}

BucketAssignment Reducer::first_assignment() const {
  if (!finds_unused()) {
    return assign_buckets(bucketed_tensors(), {});  // one a type: no overlap in the first iteration
  }
  std::vector<Bytes> limits{options_.bucket_cap.value_or(default_cap)};
  if (!options_.bucket_cap) {
    limits.insert(limits.begin(), first_bucket_cap);
  }
  BucketAssignment buckets = assign_buckets(bucketed_tensors(), limits);
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

// The old buckets go first; those that gradients are views of stay until they are none.
void Reducer::make_buckets(Rank& rank, const BucketAssignment& assignment) {
  for (const Bucket& old : buckets_) {
    outlived_.push_back(old.flat);
  }
  free_outlived(rank);
  buckets_.clear();
  buckets_.reserve(assignment.size());
  for (const std::vector<size_t>& positions : assignment) {
    Bucket& bucket = buckets_.emplace_back();
    std::vector<Slice> values;
    values.reserve(positions.size());
    bucket.parameters.reserve(positions.size());
    for (const size_t position : positions) {
      const size_t index = trainable_[position];
      places_[index] = {buckets_.size() - 1, bucket.parameters.size(), position};
      bucket.parameters.push_back(index);
      values.push_back(replica_->parameters()[index].tensor.value);
    }
    bucket.flat =
        rank.allocate(options_.gradient_as_bucket_view ? Purpose::gradient : Purpose::communication,
                      values.front().dtype, total_elements(values));
    bucket.parts = parts_of(bucket.flat, values);
  }
}

// A replaced bucket lives as long as gradients are views of it.
void Reducer::free_outlived(Rank& rank) {
  std::erase_if(outlived_, [&](const Slice& flat) {
    for (const Replica::Parameter& parameter : replica_->parameters()) {
      if (parameter.tensor.gradient.buffer == flat.buffer) {
        return false;
      }
    }
    rank.release(flat);
    return true;
  });
}

Program Reducer::rebuild_buckets(Rank& rank) {
  if (!may_rebuild() || ready_order_.empty()) {
    co_return;
  }
  has_rebuilt_ = true;
  const auto count = std::ssize(trainable_);
  const Slice order = rank.allocate(Purpose::metric, DType::int32, count + 1);
  Values own(DType::int32, count + 1);
  for (int64_t i = 0; i < count; ++i) {
    own.set_integer(i, static_cast<int64_t>(ready_order_[static_cast<size_t>(i)]));
  }
  rank.write(order, own);
  const Ticket ordered =
      rank.broadcast(group_.group, order, group_.first_rank, {group_.on, {}, site_id(send_order)});
  co_await rank.settle(ordered);
  const std::vector<size_t> ready = order_in(rank.read(order), count);
  const Bytes cap = options_.bucket_cap.value_or(default_cap);
  const Bytes limits[] = {options_.bucket_cap ? cap : first_bucket_cap, cap};
  const BucketAssignment assignment = assign_buckets(bucketed_tensors(), ready, limits);
  const Slice sizes = rank.allocate(Purpose::communication, DType::int32, std::ssize(assignment));
  const Ticket sized =
      rank.broadcast(group_.group, sizes, group_.first_rank, {group_.on, {}, site_id(send_sizes)});
  co_await rank.settle(sized);
  rank.release(order);
  rank.release(sizes);
  make_buckets(rank, assignment);
}

BucketAssignment Reducer::bucket_assignment() const {
  BucketAssignment assignment;
  for (const Bucket& bucket : buckets_) {
    assignment.push_back(bucket.parameters);
  }
  return assignment;
}

}  // namespace lockstep
