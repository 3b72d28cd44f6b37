#pragma once

#include <utility>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/step_kinds.hpp"

namespace lockstep {

/// A bucket whose gradients are all in, as a communication hook gets it (torch's GradBucket).
struct FullBucket {
  size_t index = 0;
  bool is_last = false;
  /// Between this bucket's exchange and its end the reducer submits no other collective.
  bool is_alone = true;
  Slice flat;
  std::vector<Slice> parts;   ///< of `flat`, one a parameter
  std::vector<int64_t> rows;  ///< the first dimension of each parameter
  Ticket filled;
};

/// A communication hook of torch's DDP: the reducer fills buckets and leaves to it what the ranks
/// make of them, the division by their number included. It outlives the wrapped model, as the
/// object does that a script passes.
class BucketHook {
 public:
  virtual ~BucketHook() = default;
  /// Before the first bucket of a backward; the host may wait.
  virtual Program begin(Rank& rank);
  /// Submits the exchange of a bucket. What waits for the ticket finds the result in `flat`.
  virtual Ticket start(Rank& rank, const FullBucket& bucket) = 0;
  /// All buckets of the backward have been started.
  virtual Program finish(Rank& rank);

  /// As of a Strategy, which has a step for each backward that exchanges gradients.
  virtual bool counts_steps() const { return false; }
  virtual int64_t kind_of_step(int64_t /*ahead*/) const { return 0; }
  virtual int64_t place(int64_t /*ahead*/) const { return 0; }
  virtual void leave_out(int64_t /*steps*/) {}

  /// Bytes of each message since the last question.
  virtual std::vector<Bytes> take_messages() { return std::exchange(messages_, {}); }

 protected:
  /// Counted as a message, unless it holds nothing.
  Ticket all_reduce(Rank& rank, GroupId group, const Slice& data, Ticket after, SiteId site);

 private:
  std::vector<Bytes> messages_;
};

}  // namespace lockstep
