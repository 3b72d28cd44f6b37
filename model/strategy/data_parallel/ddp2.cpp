#include "model/strategy/data_parallel/ddp2.hpp"

#include "model/strategy/data_parallel/ddp_arguments.hpp"
#include "model/strategy/data_parallel/ddp_construction.hpp"
#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {
constexpr std::string_view reduced_over_nodes = "gradients_reduced";
}

DataParallelInNodes::DataParallelInNodes(const TrainingPlan& plan, const ReducerOptions& options,
                                         bool broadcast_buffers)
    : DistributedStrategy(plan),
      options_(options),
      broadcast_buffers_(broadcast_buffers),
      node_(plan),
      transfers_({}) {}

Program DataParallelInNodes::setup(Rank& rank, Stage stage) {
  co_await node_.setup(rank, stage);
  if (stage != Stage::fit) {
    co_return;
  }
  co_await verify_parameters(rank, replica());
  co_await broadcast_coalesced(rank, world_group, module_state_of(replica(), broadcast_buffers_), 0,
                               site_id(ddp_sites::send_parameters));
  reducer_.emplace(replica(), options_);
  reducer_->allocate(rank);
  require_forward_sync_ = true;
}

std::vector<int64_t> DataParallelInNodes::kinds_of_ranks(const RanksOfRun& run) {
  return std::vector<int64_t>(static_cast<size_t>(run.all), 0);
}

Program DataParallelInNodes::before_forward(Rank& rank, bool with_gradients) {
  if (with_gradients) {
    reducer_->raise_if_unfinished();
    co_await reducer_->rebuild_buckets(rank);
  }
  if (broadcast_buffers_ && require_forward_sync_ && !replica().buffers().empty()) {
    co_await broadcast_coalesced(rank, world_group, replica().state().buffer_values(), 0,
                                 site_id(ddp_sites::send_buffers));
  }
}

Program DataParallelInNodes::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  co_await rank.settle(loss_ready());
  const bool is_wrapped = reducer_.has_value();
  if (is_wrapped) {
    co_await reducer_->settle(rank);
  }
  const bool through_wrapper = is_wrapped && options.through_wrapper;
  synchronising_ = through_wrapper && options.training && options.synchronise;
  transfers_.begin_forward(options.training);
  if (through_wrapper && options.enters_wrapper) {
    co_await before_forward(rank, options.training);
  }
  co_await node_.forward(rank, batch, options);
  if (through_wrapper) {
    require_forward_sync_ = synchronising_;
  }
  if (synchronising_) {
    reducer_->prepare_for_backward();
  }
}

// The devices of the node add up first: what the nodes exchange is the sum of each.
Program DataParallelInNodes::backward(Rank& rank, const StepOptions& options) {
  const std::vector<size_t> layers = replica().layers_last_to_first();
  co_await node_.backward(rank, options);
  if (!reducer_) {
    co_return;
  }
  if (synchronising_) {
    reducer_->divide_by(rank.world_size());
  } else if (options.through_wrapper) {
    co_await reducer_->refuse_first_static(rank);
  }
  const Ticket added = rank.event({replica().compute(), {}, site_id(ddp_sites::fill_bucket)});
  for (const size_t layer : layers) {
    reducer_->gradients_ready(rank, layer, added);
  }
  co_await reducer_->finish(rank);
  for (const Bytes bytes : reducer_->take_reduced_bytes()) {
    transfers_.add(reduced_over_nodes, bytes);
  }
}

Program DataParallelInNodes::optimizer_step(Rank& rank, const UpdateOptions& options) {
  transfers_.end_step();
  return node_.optimizer_step(rank, options);
}

Program DataParallelInNodes::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  co_await node_.zero_gradients(rank, optimizer, set_to_none);
  if (reducer_) {
    reducer_->gradients_forgotten(rank);
  }
}

Program DataParallelInNodes::teardown(Rank& rank) {
  if (reducer_) {
    co_await reducer_->settle(rank);
    reducer_->release(rank);
    reducer_.reset();
  }
}

std::vector<Transfer> DataParallelInNodes::transfers_per_step() const {
  std::vector<Transfer> transfers = node_.transfers_per_step();
  for (const Transfer& between_nodes : transfers_.all()) {
    if (between_nodes.label == reduced_over_nodes) {
      transfers.push_back(between_nodes);
    }
  }
  return transfers;
}

StrategyEntry data_parallel_in_nodes() {
  StrategyEntry entry;
  entry.name = "ddp2";
  entry.class_name = "DDP2Strategy";
  entry.traits.layout = ProcessLayout::one_for_each_node;
  entry.traits.wraps_in_ddp = true;
  entry.traits.loss_scaling = LossScaling::of_trainer;
  entry.traits.holds_whole_state = true;
  entry.traits.takes_tensor_norms = true;
  entry.arguments = ddp2_arguments();
  entry.sites = data_parallel().sites;
  add_steps(ddp_sites::every_step, entry.sites);
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    for (const OptimizerPlan& optimizer : plan.optimizers) {
      if (optimizer.sharding != OptimizerPlan::Sharding::none) {
        throw UnmodelledArgument("ZeroRedundancyOptimizer under ddp2 is not modelled", "",
                                 "use ddp, or the optimizer that it holds");
      }
    }
    const std::vector<StrategyArgument> rows = ddp2_arguments();
    const StrategyArgumentReader read(arguments, rows);
    return std::make_unique<DataParallelInNodes>(plan, reducer_options_from(read),
                                                 read.boolean("broadcast_buffers"));
  };
  entry.without_effect = [](const TrainingPlan&, const StrategyArguments&) {
    return std::vector<std::pair<std::string, std::string>>{
        {"",
         "ddp2 is rehearsed as it was meant, with all devices of a node: the class of "
         "Lightning 1.5 and 1.6 hands torch the first of them alone, and the others idle"}};
  };
  return entry;
}

}  // namespace lockstep
