#include "model/strategy/data_parallel/bagua/low_precision.hpp"

#include <algorithm>

#include "model/network/arithmetic/min_max_uint8.hpp"
#include "model/strategy/data_parallel/bagua/bagua_sites.hpp"
#include "model/strategy/data_parallel/bagua/bucket_operation.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

using namespace bagua_sites;

LowPrecisionRing::LowPrecisionRing(Replica& replica, const BaguaGroups& groups,
                                   const std::vector<WeightBucket>& buckets,
                                   int64_t communication_interval, const Slice& error)
    : replica_(&replica), groups_(&groups), interval_(communication_interval), error_(error) {
  for (const WeightBucket& bucket : buckets) {
    State state;
    state.bucket = bucket;
    state.is_ready.resize(bucket.parameters.size(), false);
    states_.push_back(std::move(state));
  }
}

// Rank 0's weights are everybody's by now.
void LowPrecisionRing::prepare(Rank& rank) {
  if (!groups_->takes_part()) {
    return;
  }
  for (State& state : states_) {
    const std::vector<Slice>& weights = state.bucket.weights;
    for (Slice* copy : {&state.own, &state.left, &state.right}) {
      *copy = rank.allocate(Purpose::communication, weights.front().dtype, total_elements(weights));
      copy_each(rank, weights, parts_of(*copy, weights),
                {compute_stream, {}, site_id(copy_weights)});
    }
  }
}

Program LowPrecisionRing::forward_begins(Rank&, bool training) {
  if (training) {
    interval_.count_forward();
  }
  co_return;
}

// A bucket goes once all optimizers of its parameters have stepped, behind the bucket before it.
Program LowPrecisionRing::step_taken(Rank& rank, size_t optimizer) {
  if (!interval_.is_due() || states_.empty()) {
    co_return;
  }
  const OptimizerPlan& plan = replica_->plan().optimizers.at(optimizer);
  for (State& state : states_) {
    for (size_t part = 0; part < state.is_ready.size(); ++part) {
      const size_t index = state.bucket.parameters[part];
      const bool held = plan.holds(replica_->parameters()[index].place.layer);
      state.is_ready[part] = state.is_ready[part] || held;
    }
  }
  const Ticket updated = rank.event({compute_stream, {}, site_id(difference)});
  Ticket last{};
  while (std::ranges::all_of(states_[next_].is_ready, [](bool ready) { return ready; })) {
    State& state = states_[next_];
    last = exchange(rank, state, updated);
    state.is_ready.assign(state.is_ready.size(), false);
    next_ = (next_ + 1) % states_.size();
  }
  if (last) {
    in_flight_ = rank.event({compute_stream, {last}, site_id(take_weights)});
  }
}

Ticket LowPrecisionRing::exchange(Rank& rank, const State& state, Ticket ready) {
  const std::vector<Slice>& tensors = state.bucket.weights;
  Slice weights = state.bucket.flat;
  const bool is_flat = weights.buffer != no_buffer;
  const ComputeOptions options{communication_stream, {ready}, site_id(copy_weights)};
  if (!is_flat) {
    weights = rank.allocate(Purpose::communication, tensors.front().dtype, total_elements(tensors),
                            DeviceId{0}, queue::communication);
    ready = copy_each(rank, tensors, parts_of(weights, tensors), options);
  }
  Ticket done = groups_->reduce_to_leader(rank, weights, true, ready);
  if (groups_->takes_part()) {
    done = among_members(rank, state, weights, done);
  }
  done = groups_->send_from_leader(rank, weights, done);
  if (!is_flat) {
    done = copy_each(rank, parts_of(weights, tensors), tensors,
                     {communication_stream, {done}, site_id(copy_weights)});
    rank.release(weights);
  }
  return done;
}

Ticket LowPrecisionRing::among_members(Rank& rank, const State& state, const Slice& weights,
                                       Ticket ready) {
  const int32_t ranks = groups_->ranks();
  const auto on_stream = [](std::string_view step) {
    return ComputeOptions{communication_stream, {}, site_id(step)};
  };
  elementwise(rank, Kernel::add_scaled, {state.left}, {weights}, 1.0 / 3,
              {communication_stream, {ready}, site_id(difference)});
  elementwise(rank, Kernel::add_scaled, {state.right}, {weights}, 1.0 / 3, on_stream(difference));
  Ticket done = elementwise(rank, Kernel::add_scaled, {state.own}, {weights}, -5.0 / 3,
                            on_stream(difference));
  std::vector<Slice> bytes;  // own, left, right
  for (int32_t i = 0; i < (ranks > 1 ? 3 : 1); ++i) {
    bytes.push_back(rank.allocate(Purpose::communication, DType::uint8,
                                  compressed_bytes(weights.elements, 1), DeviceId{0},
                                  queue::communication));
  }
  done = compress(rank, weights, bytes[0], 1, error_, done);
  if (ranks > 1) {
    const int32_t left = groups_->member((groups_->index() + ranks - 1) % ranks);
    const int32_t right = groups_->member((groups_->index() + 1) % ranks);
    GroupedCall swap(rank, {communication_stream, {done}, site_id(swap_differences)});
    swap.send(groups_->group(), bytes[0], left)
        .send(groups_->group(), bytes[0], right)
        .receive(groups_->group(), bytes[1], left)
        .receive(groups_->group(), bytes[2], right)
        .submit();
    exchanged_bytes_.push_back(bytes[0].bytes() * 2);
  }
  // One rank alone is its own neighbour.
  decompress(rank, ranks > 1 ? bytes[1] : bytes[0], weights, 1, site_id(difference));
  elementwise(rank, Kernel::add, {weights}, {state.left}, 0, on_stream(difference));
  decompress(rank, ranks > 1 ? bytes[2] : bytes[0], weights, 1, site_id(difference));
  elementwise(rank, Kernel::add, {weights}, {state.right}, 0, on_stream(difference));
  decompress(rank, bytes[0], weights, 1, site_id(difference));
  elementwise(rank, Kernel::add, {state.own}, {weights}, 0, on_stream(difference));
  done = elementwise(rank, Kernel::copy, {weights}, {state.own}, 0, on_stream(take_weights));
  for (const Slice& each : bytes) {
    rank.release(each);
  }
  return done;
}

Program LowPrecisionRing::settle(Rank& rank) {
  co_await rank.settle(std::exchange(in_flight_, {}));
}

Program LowPrecisionRing::end(Rank& rank) {
  co_await settle(rank);
  for (State& state : states_) {
    for (Slice* copy : {&state.own, &state.left, &state.right}) {
      if (copy->buffer != no_buffer) {
        rank.release(std::exchange(*copy, {}));
      }
    }
  }
}

}  // namespace lockstep
