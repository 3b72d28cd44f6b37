#pragma once

#include <optional>
#include <vector>

#include "model/strategy/exchange/gradient_exchange.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// How FairScale's ShardedDataParallel reduces gradients.
struct OwnerReductionOptions {
  /// Elements of a flat bucket for each owner; 0: every gradient is reduced by itself.
  int64_t bucket_elements = 0;
  /// Gradients travel in half precision; without effect in buckets.
  bool in_half_precision = false;
};

/// Each gradient is reduced to the rank that owns its parameter; the others drop it
/// (fairscale/nn/data_parallel/sharded_ddp.py).
class OwnerReduction final : public GradientExchange {
 public:
  /// `owners`: by parameter of the replica, the rank that updates it.
  OwnerReduction(Replica& replica, std::vector<int32_t> owners,
                 const OwnerReductionOptions& options);

  void allocate(Rank& rank);
  void release(Rank& rank);

  void begin(Rank& rank, bool synchronise) override;
  void gradients_ready(Rank& rank, size_t layer, Ticket done) override;
  Program finish(Rank& rank) override;
  Program settle(Rank& rank) override;
  /// Whether a bucket was reduced while a gradient was not a view of it any more.
  bool sends_old_gradients() const { return sends_old_gradients_; }
  /// Whether a backward has reduced again what an earlier one had, before the optimizer's step.
  bool reduces_twice() const { return reduces_twice_; }
  void end_step() { has_reduced_ = false; }
  std::vector<Bytes> take_exchanged_bytes() override { return std::exchange(exchanged_bytes_, {}); }

 private:
  /// The gradients of one owner that fit into its bucket. They are views of it from the beginning.
  struct Bucket {
    int32_t owner = 0;
    std::vector<size_t> parameters;
    Slice flat;
    size_t ready = 0;
    bool sent = false;
  };
  struct InFlight {
    size_t parameter = 0;
    Slice narrow;  ///< what travels in half precision
    Ticket reduced;
  };

  void assign_buckets();
  void make_views(Bucket& bucket);
  void send(Rank& rank, Bucket& bucket, Ticket done);
  void send(Rank& rank, size_t parameter, Ticket done);
  Ticket scale(Rank& rank, const Slice& gradient, Ticket done);

  Replica* replica_;
  std::vector<int32_t> owners_;
  OwnerReductionOptions options_;
  std::vector<Bucket> buckets_;
  std::vector<std::optional<size_t>> bucket_of_;  ///< by parameter
  bool synchronises_ = false;
  bool sends_old_gradients_ = false;
  bool has_reduced_ = false;  ///< since the optimizer's step
  bool reduces_twice_ = false;
  std::vector<InFlight> in_flight_;
  Ticket exchanged_{};
  std::vector<Bytes> exchanged_bytes_;
};

}  // namespace lockstep
