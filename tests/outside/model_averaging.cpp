// A strategy that Lockstep does not have, written against its installed headers: every rank trains
// on its own data and after each optimizer step the parameters are averaged (synchronous model
// averaging). Linked with `lockstep::program`, this file is a `lockstep` that has it.
#include <memory>
#include <vector>

#include "model/strategy/data_parallel/distributed.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/registry.hpp"

using namespace lockstep;

class ModelAveraging final : public DistributedStrategy {
 public:
  explicit ModelAveraging(const TrainingPlan& training)
      : DistributedStrategy(training), replica_(training, DeviceId{0}) {}

  std::string_view name() const override { return "model_averaging"; }

  Program setup(Rank& rank, Stage) override {
    replica_.allocate(rank);
    co_return;
  }

  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override {
    co_await rank.settle_all(averaged_);
    loss_ready_ = replica_.forward(rank, batch, options);
  }

  Program backward(Rank& rank, const StepOptions& options) override {
    replica_.backward_of_loss(rank, options);
    for (const size_t layer : replica_.layers_last_to_first()) {
      replica_.backward(rank, layer);
    }
    replica_.forget_forward(rank);
    co_return;
  }

  Program optimizer_step(Rank& rank, const UpdateOptions& options) override {
    const Ticket updated = replica_.optimizer_step(rank, options, site_id("model_averaging: step"));
    averaged_.clear();
    for (const Replica::Parameter& parameter : replica_.parameters()) {
      averaged_.push_back(rank.all_reduce(
          world_group, parameter.tensor.value, Reduction::avg,
          {communication_stream, {updated}, site_id("model_averaging: all_reduce")}));
    }
    co_return;
  }

  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override {
    replica_.zero_gradients(rank, optimizer, set_to_none);
    co_return;
  }

  Program teardown(Rank& rank) override { co_await rank.settle_all(averaged_); }

  Slice loss() const override { return replica_.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }

 private:
  Replica replica_;
  Ticket loss_ready_;
  std::vector<Ticket> averaged_;
};

// What Lockstep asks a program for, beside its own strategies.
std::vector<StrategyEntry> lockstep::additional_strategies() {
  StrategyEntry entry;
  entry.name = "model_averaging";
  entry.class_name = "ModelAveragingStrategy";
  entry.sites = {{"model_averaging: step"}, {"model_averaging: all_reduce"}};
  entry.make = [](const TrainingPlan& training, const StrategyArguments&) {
    return std::make_unique<ModelAveraging>(training);
  };
  return {entry};
}
