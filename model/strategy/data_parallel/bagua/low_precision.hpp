#pragma once

#include <utility>
#include <vector>

#include "model/strategy/data_parallel/bagua/bagua_exchange.hpp"
#include "model/strategy/data_parallel/bagua/bagua_groups.hpp"
#include "model/strategy/data_parallel/bagua/decentralized.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// Weights of trainable parameters in one bucket.
struct WeightBucket {
  std::vector<size_t> parameters;
  std::vector<Slice> weights;
  Slice flat;  ///< that they are views of; no_buffer: they have memory of their own
};

/// After the optimizer's step every rank tells its two neighbours on a ring how its weights have
/// changed, compressed, and averages with what it knows of theirs
/// (decentralized_low_precision_synchronous.rs). With an exact codec x = (w + l + r) / 3 + step.
class LowPrecisionRing final : public BaguaExchange {
 public:
  LowPrecisionRing(Replica& replica, const BaguaGroups& groups,
                   const std::vector<WeightBucket>& buckets, int64_t communication_interval,
                   const Slice& error);

  void prepare(Rank& rank) override;
  Program end(Rank& rank) override;
  Program forward_begins(Rank& rank, bool training) override;
  Program step_taken(Rank& rank, size_t optimizer) override;
  bool counts_steps() const override { return interval_.counts_steps(); }
  void add_step_kind(int64_t ahead, int64_t forwards, std::vector<int64_t>& kind) const override {
    interval_.add_step_kind(ahead, forwards, kind);
  }
  void add_place(int64_t forwards, std::vector<int64_t>& place) const override {
    place.push_back(interval_.place(forwards));
  }
  int64_t steps_of_cycle(int64_t forwards) const override {
    return interval_.steps_of_cycle(forwards);
  }
  void leave_out(int64_t forwards) override { interval_.leave_out(forwards); }
  void begin(Rank&, bool) override {}
  void gradients_ready(Rank&, size_t, Ticket) override {}
  Program finish(Rank&) override { co_return; }
  Program settle(Rank& rank) override;
  std::vector<Bytes> take_exchanged_bytes() override { return std::exchange(exchanged_bytes_, {}); }

 private:
  struct State {
    WeightBucket bucket;
    std::vector<bool> is_ready;
    // What all three ranks agree on: the own weights, and those of the neighbours.
    Slice own;
    Slice left;
    Slice right;
  };

  Ticket exchange(Rank& rank, const State& state, Ticket ready);
  Ticket among_members(Rank& rank, const State& state, const Slice& weights, Ticket ready);

  Replica* replica_;
  const BaguaGroups* groups_;
  CommunicationInterval interval_;
  Slice error_;
  std::vector<State> states_;
  size_t next_ = 0;
  Ticket in_flight_;
  std::vector<Bytes> exchanged_bytes_;
};

}  // namespace lockstep
