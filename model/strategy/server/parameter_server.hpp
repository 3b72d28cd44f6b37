#pragma once

#include <optional>

#include "model/strategy/data_parallel/replicated.hpp"
#include "model/strategy/server/server_options.hpp"
#include "model/strategy/server/weight_server.hpp"

namespace lockstep {

struct StrategyEntry;

/// Servers hold the weights and the state of their optimizer; workers compute gradients by copies
/// of the weights, push them in place of an optimizer step, and get the weights back. The last
/// ranks are the servers.
class ParameterServer final : public ReplicatedDataParallel {
 public:
  ParameterServer(const TrainingPlan& plan, const ServerOptions& options);

  std::string_view name() const override { return "parameter_server"; }
  Program setup(Rank& rank, Stage stage) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program serve(Rank& rank) override;
  Program dismiss_servers(Rank& rank) override;

  std::vector<HeldParameter> held_parameters() override;
  /// Rank 0's weights. No worker has the state of the optimizer, and nothing asks a server for it.
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::optional<Staleness> staleness() const override;
  std::vector<Transfer> transfers_per_step() const override;
  std::vector<KnownDifference> known_differences() override;
  std::string no_sync_refusal() const override;

 protected:
  /// Gradients leave a worker in its optimizer step, not in its backward.
  GradientExchange* exchange() override { return nullptr; }
  /// The workers.
  Task<GroupId> trainers(Rank& rank) override;

 private:
  Program make_group(Rank& rank);
  void allocate(Rank& rank);
  Program call(Rank& rank, WorkerMessage message, SiteId site);
  void say(Rank& rank, const WorkerMessage& message);

  ServerOptions options_;
  FlatWeights layout_;
  ServerRoles roles_;
  std::optional<GroupId> workers_;  ///< none: not made yet
  Slice weights_;                   ///< of a worker: what it trains, in one piece
  Slice gradients_;                 ///< in the same order
  Slice said_;
  bool clips_ = false;  ///< this worker has clipped a gradient
  std::optional<WeightServer> server_;
};

/// "parameter_server", ParameterServerStrategy.
StrategyEntry parameter_server();

}  // namespace lockstep
