#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/strategy/data_parallel/bagua/bagua_exchange.hpp"

namespace lockstep {

/// A second host thread of every rank averages the weights of all ranks again and again
/// (async_model_average.py, decentralized_full_precision_asynchronous.rs): a copy c of the weights
/// is summed over the ranks while training goes on, then x = x + sum / n - c. Bagua's thread takes
/// a lock for that, which training holds from the begin of a forward to the end of its backward, so
/// that weights change between steps alone. Here training serves the thread at the begin of a
/// forward, if it waits there. That, and whether the thread sees the end of training, are recorded
/// choices; all values follow from them.
class AsyncAverage final : public BaguaExchange {
 public:
  /// `weights`: all that are trained, in one piece. `group`: all ranks, of the thread alone.
  AsyncAverage(const Slice& weights, GroupId group, Time interval, bool barrier_is_all_reduce);

  void prepare(Rank& rank) override;
  Program end(Rank& rank) override;
  Program forward_begins(Rank& rank, bool training) override;
  void begin(Rank&, bool) override {}
  void gradients_ready(Rank&, size_t, Ticket) override {}
  Program finish(Rank&) override;
  Program settle(Rank&) override { co_return; }
  std::vector<Bytes> take_exchanged_bytes() override;
  bool holds_lock() const override { return holds_lock_; }
  int64_t steps_of_cycle(int64_t) const override { return 0; }

 private:
  /// Which wait the thread is in. `elsewhere`: one of those that are not described.
  enum class Stands : uint8_t { elsewhere, negotiating, wants_snapshot, averaging, wants_update };
  /// What training and the thread of a rank share.
  struct Shared final : DescribedLane {
    std::optional<LaneMemory> memory() const override;

    Slice weights;
    Slice snapshot;
    Slice sum;
    Slice flag;
    GroupId group;
    Time interval{};
    int32_t ranks = 1;
    bool has_snapshot = false;  ///< the thread wants the average applied; else a snapshot
    bool waits = false;         ///< to be served
    bool over = false;          ///< training: the thread serves itself
    bool asks = false;          ///< this rank asks all to end
    Ticket waiting;             ///< promises
    Ticket served;
    Ticket training_is_over;
    Ticket asked_to_end;
    Ticket ended;
    Ticket done;  ///< what serving has submitted
    std::vector<Bytes> exchanged;
    Stands stands = Stands::elsewhere;
  };

  static Program average_again_and_again(Rank& rank, std::shared_ptr<Shared> shared);
  static Program wait_for_training(Rank& rank, std::shared_ptr<Shared> shared, Stands as);
  static Task<bool> all_ask_to_end(Rank& rank, std::shared_ptr<Shared> shared);
  static void serve(Rank& rank, Shared& shared);
  Task<bool> serves_now(Rank& rank);

  std::shared_ptr<Shared> shared_;
  bool barrier_is_all_reduce_;
  bool is_running_ = false;
  bool holds_lock_ = false;  ///< from the begin of a forward to the end of its backward
};

}  // namespace lockstep
