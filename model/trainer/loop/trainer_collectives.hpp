#pragma once

#include "model/strategy/strategy.hpp"
#include "model/strategy/trainer_membership.hpp"
#include "model/user_program/stream_order.hpp"

namespace lockstep {

/// The collectives that Lightning itself calls, on one rank. Each comes after what statements made
/// the compute stream wait for.
class TrainerCollectives {
 public:
  /// All outlive the collectives.
  TrainerCollectives(Rank& rank, const TrainerMembership& membership, Strategy& strategy,
                     StreamOrder& streams, TensorStore& tensors);

  bool distributed() const { return membership_.trainers > 1; }
  Program barrier(SiteId site);
  /// broadcast_object_list of rank 0's object: its size, then its bytes.
  Program broadcast_object(TensorPointer object, SiteId site);
  /// The same of a typical pickled path; nothing where the strategy is not distributed.
  Program broadcast_log_dir(SiteId site);
  /// Rank 0's tensor.
  Program broadcast(TensorPointer data, SiteId site);
  /// The strategy's reduce_boolean_decision: all ranks, or any of them.
  Task<bool> reduce_boolean_decision(bool decision, bool all, SiteId site);
  /// reduce(SUM) of one int64, the length of a loader; raises where this rank alone has none.
  Program reduce_length(int64_t length, SiteId site);

  /// Room for an object as Python pickles it.
  TensorPointer object_tensor(int64_t bytes);
  /// One int64 as torch.tensor([value]) gives it.
  TensorPointer tensor_of(int64_t value);

 private:
  Program broadcast_size(SiteId site);

  Rank& rank_;
  const TrainerMembership& membership_;
  Strategy& strategy_;
  StreamOrder& streams_;
  TensorStore& tensors_;
};

}  // namespace lockstep
