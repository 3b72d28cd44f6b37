#pragma once

#include <numeric>
#include <utility>
#include <vector>

#include "model/strategy/data_parallel/bagua/bagua_exchange.hpp"
#include "model/strategy/data_parallel/bagua/bagua_groups.hpp"

namespace lockstep {

/// With whom a member averages at a communication step, of an even number of members: those of the
/// lower half meet all of the upper one in turn (decentralized_full_precision_synchronous.rs).
int32_t shift_one_peer(int32_t member, int32_t members, int64_t step);

/// Which training forwards are followed by an exchange of weights.
class CommunicationInterval {
 public:
  explicit CommunicationInterval(int64_t interval) : interval_(interval) {}
  void count_forward() { ++forwards_; }
  bool is_due() const { return is_due(forwards_); }
  void leave_out(int64_t forwards) { forwards_ += forwards; }
  /// How often it is due in so many forwards from now on.
  int64_t times_due(int64_t forwards) const {
    return due_until(forwards_ + forwards) - due_until(forwards_);
  }
  bool counts_steps() const { return interval_ > 1; }
  void add_step_kind(int64_t ahead, int64_t forwards, std::vector<int64_t>& kind) const;
  int64_t place(int64_t forwards) const { return (forwards_ + forwards) % interval_; }
  int64_t steps_of_cycle(int64_t forwards) const {
    return interval_ / std::gcd(interval_, forwards);
  }

 private:
  bool is_due(int64_t forward) const { return forward > 0 && (forward - 1) % interval_ == 0; }
  int64_t due_until(int64_t forward) const {
    return forward > 0 ? (forward - 1) / interval_ + 1 : 0;
  }

  int64_t interval_;
  int64_t forwards_ = 0;
};

/// Weights are averaged while forward and backward run on the old ones, and taken over before the
/// optimizer steps: x = mean of x_j - lr * gradient at the own old x. Ranks differ by a step.
class DecentralizedAverage final : public BaguaExchange {
 public:
  /// `weights`: all that are trained, in one piece.
  DecentralizedAverage(const BaguaGroups& groups, const Slice& weights, bool shift_one,
                       int64_t communication_interval)
      : groups_(&groups),
        weights_(weights),
        shift_one_(shift_one),
        interval_(communication_interval) {}

  void prepare(Rank& rank) override;
  Program end(Rank& rank) override;
  Program forward_begins(Rank& rank, bool training) override;
  bool counts_steps() const override { return interval_.counts_steps() || peers() > 1; }
  void add_step_kind(int64_t ahead, int64_t forwards, std::vector<int64_t>& kind) const override;
  void add_place(int64_t forwards, std::vector<int64_t>& place) const override;
  int64_t steps_of_cycle(int64_t forwards) const override;
  void leave_out(int64_t forwards) override;
  void begin(Rank& rank, bool synchronise) override;
  void gradients_ready(Rank&, size_t, Ticket) override {}
  Program finish(Rank& rank) override;
  Program settle(Rank& rank) override;
  std::vector<Bytes> take_exchanged_bytes() override { return std::exchange(exchanged_bytes_, {}); }

 private:
  void raise_if_odd() const;
  int64_t peers() const;
  Ticket average(Rank& rank, Ticket ready);
  Ticket average_with_peer(Rank& rank, Ticket ready);

  const BaguaGroups* groups_;
  Slice weights_;
  bool shift_one_;
  CommunicationInterval interval_;
  int64_t step_ = 0;  ///< of communication
  Slice average_;     ///< what comes of it
  Slice own_;         ///< what a leader sends to its peer
  bool synchronises_ = false;
  Ticket averaged_;
  Ticket in_flight_;
  std::vector<Bytes> exchanged_bytes_;
};

}  // namespace lockstep
