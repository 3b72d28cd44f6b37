#include "tests/property/training_case.hpp"

#include <fmt/core.h>

#include "model/core/ensure.hpp"
#include "model/network/build.hpp"
#include "model/strategy/data_parallel/dp.hpp"
#include "model/strategy/data_parallel/single.hpp"

namespace lockstep::test {

namespace {

constexpr size_t hidden_layer = 2;  ///< as wide as its input: a forward may leave it out

LayerDescription layer_of(const std::string& kind, std::initializer_list<int64_t> widths) {
  LayerDescription layer;
  layer.kind = kind;
  for (const int64_t width : widths) {
    layer.arguments.push_back({"", width});
  }
  return layer;
}

// The numbers of its layers do not depend on how they are marked.
LayerDescription checkpointed(const TrainingCase& training, std::vector<LayerDescription> layers) {
  const std::string word =
      training.checkpoint == Checkpointed::by_fairscale ? "fairscale" : "torch";
  LayerDescription all;
  all.kind = "Sequential";
  if (training.checkpoint == Checkpointed::each_layer) {
    for (LayerDescription& layer : layers) {
      layer.arguments.push_back({"checkpoint", word});
    }
  } else if (training.checkpoint != Checkpointed::none) {
    all.arguments.push_back({"checkpoint", word});
  }
  all.layers = std::move(layers);
  return all;
}

std::unique_ptr<Strategy> strategy_of(const TrainingCase& training, const TrainingPlan& plan) {
  switch (training.strategy) {
    case Trained::single: return std::make_unique<SingleDevice>(plan);
    case Trained::dp: return std::make_unique<DataParallel>(plan);
    case Trained::ddp: break;
  }
  return std::make_unique<DistributedDataParallel>(plan, training.options);
}

Batch batch_of(const TrainingCase& training, int32_t rank, int64_t number) {
  Batch batch;
  for (int64_t i = 0; i < training.batch; ++i) {
    batch.samples.push_back((number * training.batch + i) * training.ranks + rank);
  }
  return batch;
}

/// What one rank does in one step.
struct StepPlan {
  int64_t step = 0;
  bool skips_layer = false;
  bool reduces_loss = false;
};

Program train_step(Rank& rank, const TrainingCase* training, Strategy* strategy, StepPlan plan) {
  for (int64_t micro = 0; micro < training->accumulate; ++micro) {
    StepOptions options;
    options.synchronise = micro + 1 == training->accumulate;
    options.loss_factor = 1.0 / static_cast<double>(training->accumulate);
    if (plan.skips_layer) {
      options.skipped_layers = {hidden_layer};
    }
    const Batch batch = batch_of(*training, rank.id(), plan.step * training->accumulate + micro);
    co_await strategy->forward(rank, batch, options);
    co_await strategy->backward(rank, options);
  }
  if (plan.reduces_loss) {
    co_await strategy->reduce(rank, strategy->loss(), Reduction::sum, site_id("foreign call"));
  }
  co_await strategy->optimizer_step(rank, {});
  co_await strategy->zero_gradients(rank, 0, true);
}

TrainingPlan plan_of(const TrainingCase& training, const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.optimizers.front().kind = training.adam ? OptimizerKind::adam : OptimizerKind::sgd;
  plan.optimizers.front().lr = 0.125;
  return plan;
}

}  // namespace

TrainingFlaw planted(const TrainingCase& training) {
  const bool possible =
      training.ranks > 1 && training.strategy == Trained::ddp &&
      (training.flaw != TrainingFlaw::raised || training.steps > 1) &&
      (training.flaw != TrainingFlaw::skipped_layer || !training.options.static_graph);
  return possible ? training.flaw : TrainingFlaw::none;
}

bool is_defect(const TrainingCase& training) {
  switch (planted(training)) {
    case TrainingFlaw::none: return false;
    case TrainingFlaw::uneven_data:
      // Torch's joined ranks reduce a used map that ranks with a static graph do not.
      return !training.options.join ||
             (training.options.static_graph && training.options.find_unused_parameters);
    case TrainingFlaw::skipped_layer: return !training.options.find_unused_parameters;
    case TrainingFlaw::foreign_call:
    case TrainingFlaw::raised: return true;
  }
  return false;
}

Network network_of(const TrainingCase& training) {
  const int64_t hidden = training.hidden;
  NetworkDescription description;
  description.name = "generated";
  description.input = {4};
  std::vector<LayerDescription> inner = {layer_of("ReLU", {}),
                                         layer_of("Linear", {hidden, hidden})};
  if (training.batch_norm) {
    inner.push_back(layer_of("BatchNorm1d", {hidden}));
  }
  description.layers = {layer_of("Linear", {4, hidden}), checkpointed(training, std::move(inner)),
                        layer_of("Linear", {hidden, 2})};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "a generated network is sound");
  return std::move(built.network);
}

Program train_case(Rank& rank, const TrainingCase* training, const Network* network, Seen& seen) {
  const TrainingPlan plan = plan_of(*training, *network);
  const std::unique_ptr<Strategy> strategy = strategy_of(*training, plan);
  const TrainingFlaw flaw = planted(*training);
  const bool is_last = rank.id() + 1 == rank.world_size();
  const int64_t more = flaw == TrainingFlaw::uneven_data && is_last ? 1 : 0;
  co_await strategy->setup(rank, Stage::fit);
  for (int64_t step = 0; step < training->steps + more; ++step) {
    if (flaw == TrainingFlaw::raised && is_last && step == 1) {
      throw ProgramException(site_id("raised"), "a planted exception");
    }
    const StepPlan own{step, flaw == TrainingFlaw::skipped_layer && is_last,
                       flaw == TrainingFlaw::foreign_call && rank.id() == 0};
    co_await train_step(rank, training, strategy.get(), own);
  }
  MirroredIterations others;
  co_await strategy->join(rank, others);
  co_await strategy->teardown(rank);
  const Ticket end = rank.event();
  co_await rank.settle(end);
  for (const Replica::Parameter& parameter : strategy->replica().parameters()) {
    seen.push_back(rank.read(parameter.tensor.value));
  }
}

std::ostream& operator<<(std::ostream& out, const TrainingCase& training) {
  const DataParallelOptions& ddp = training.options;
  return out << fmt::format(
             "{} ranks, {} on {} devices, hidden {}, batch norm {}, checkpointed {}, adam {}, "
             "batch {}, steps {}, "
             "accumulate {}, cap {}, find_unused {}, static {}, views {}, buffers {}, join {}, "
             "divide by initial {}; defect {}\n",
             training.ranks, trained_names[static_cast<size_t>(training.strategy)],
             training.devices, training.hidden, training.batch_norm,
             checkpointed_names[static_cast<size_t>(training.checkpoint)], training.adam,
             training.batch, training.steps, training.accumulate,
             ddp.bucket_cap ? ddp.bucket_cap->count() : 0, ddp.find_unused_parameters,
             ddp.static_graph, ddp.gradient_as_bucket_view, ddp.broadcast_buffers, ddp.join,
             ddp.divide_by_initial_world_size,
             training_flaw_names[static_cast<size_t>(planted(training))]);
}

}  // namespace lockstep::test
