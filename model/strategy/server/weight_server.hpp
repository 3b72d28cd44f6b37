#pragma once

#include <array>
#include <optional>
#include <vector>

#include "model/program/repetition.hpp"
#include "model/strategy/local_model/optimizer.hpp"
#include "model/strategy/server/flat_weights.hpp"
#include "model/strategy/server/update_rule.hpp"
#include "model/strategy/server/worker_message.hpp"
#include "model/strategy/transfers.hpp"

namespace lockstep {

/// The program of one server: it holds its part of the weights and the state of their optimizer,
/// and does what its workers ask until all of them have ended. It has room for one sum of gradients
/// and for two that arrive, whatever the number of workers.
class WeightServer : public PeriodFollower {
 public:
  /// `replica` gives shapes and first values, and has no memory.
  WeightServer(const Replica& replica, const FlatWeights& weights, const ServerOptions& options,
               const ServerRoles& roles, int32_t server);

  Program run(Rank& rank);
  /// Of each parameter that it has a part of.
  struct Held {
    size_t parameter = 0;
    int64_t first_element = 0;
    Slice value;
  };
  std::vector<Held> held() const;
  const Staleness& staleness() const { return rule_.staleness(); }
  const Transfers& transfers() const { return transfers_; }

  // Of the world.
  std::optional<LaneMemory> memory() const override;
  void period_begins(int32_t level, const PeriodsLeftOut& left_out) override;

 private:
  /// Until a period of rank 0 began: before and behind what was left out there.
  struct CountedBy {
    UpdateRule::Counted before;
    UpdateRule::Counted behind;
  };
  void allocate(Rank& rank);
  void begin_update(Rank& rank);
  void listen(Rank& rank);
  Task<std::vector<int32_t>> next_messages(Rank& rank);
  void handle(Rank& rank, int32_t worker);
  void take_gradient(Rank& rank, int32_t worker, bool keeps);
  void update(Rank& rank, int64_t averaged);
  void answer(Rank& rank, const std::vector<int32_t>& workers);

  const Replica* replica_;
  const FlatWeights* layout_;
  ServerOptions options_;
  ServerRoles roles_;
  FlatWeights::Part part_;
  UpdateRule rule_;
  OptimizedTensor flat_;                  ///< its gradient is the sum
  std::vector<OptimizedTensor> tensors_;  ///< the parts of parameters in it
  Slice arriving_[2];
  Ticket added_[2];  ///< what has read them
  size_t next_arriving_ = 0;
  struct Worker {
    Slice said;
    Ticket arrives;  ///< set while it is listened to
  };
  std::vector<Worker> workers_;
  int64_t gathered_ = 0;
  int64_t begun_ = -1;  ///< the update that was reported last
  double learning_rate_ = 0;
  Ticket changed_;   ///< the last that wrote the sum or the weights
  Ticket answered_;  ///< the last that sends the weights
  Transfers transfers_;
  std::array<std::vector<CountedBy>, period_levels> counted_;  ///< by number of the period
};

}  // namespace lockstep
