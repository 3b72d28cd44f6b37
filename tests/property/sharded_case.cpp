#include "tests/property/sharded_case.hpp"

#include <fmt/core.h>

#include "model/core/ensure.hpp"
#include "model/network/build.hpp"
#include "tests/property/sharded_draws.hpp"

namespace lockstep::test {

namespace {

using Value = StrategyArguments::Value;

LayerDescription linear_of(int64_t in, int64_t out, bool trainable = true) {
  LayerDescription layer;
  layer.kind = "Linear";
  layer.arguments = {{"", in}, {"", out}};
  if (!trainable) {
    layer.arguments.push_back({"trainable", false});
  }
  return layer;
}

void draw_wrap(const std::string& name, ShardedCase& training, bool always = false) {
  if (!once_in(3) || always) {
    training.arguments.emplace_back(
        name, std::vector<std::string>{chosen_of<std::string>({"Linear", "Sequential", "blocks"})});
  }
}

void draw_fsdp(ShardedCase& training) {
  training.strategy = "fsdp";
  const auto sharding = chosen_of<std::string>(
      {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"});
  training.arguments = {
      {"sharding_strategy", sharding},
      {"backward_prefetch", chosen_of<Value>({std::monostate(), std::string("BACKWARD_PRE"),
                                              std::string("BACKWARD_POST")})},
      {"forward_prefetch", once_in(3)},
      {"limit_all_gathers", !once_in(3)},
      {"use_orig_params", once_in(2) || training.freezes_first},  // torch flattens no such unit
      {"sync_module_states", once_in(4)}};
  if (sharding != "NO_SHARD" && training.accumulate == 1 && once_in(4)) {
    training.arguments.emplace_back("cpu_offload", true);
  }
  const bool in_parts = sharding != "NO_SHARD" && once_in(2);
  training.arguments.emplace_back("state_dict_type", std::string(in_parts ? "sharded" : "full"));
  // Flat parameters have no full optimizer state: torch raises.
  training.saves = training.saves && (in_parts || std::get<bool>(training.arguments[4].second));
  draw_wrap("auto_wrap_policy", training, sharding.find("HYBRID") != std::string::npos);
  training.accumulates_locally = once_in(2);
}

void draw_fsdp2(ShardedCase& training) {
  training.strategy = "ModelParallelStrategy";
  training.arguments = {{"data_parallel_size", int64_t{training.ranks}},
                        {"tensor_parallel_size", int64_t{1}},
                        {"save_distributed_checkpoint", once_in(2)}};
  if (once_in(2)) {
    training.arguments.emplace_back("fully_shard.reshard_after_forward", once_in(2));
  } else if (training.ranks == 4) {
    training.arguments.emplace_back("fully_shard.reshard_after_forward", int64_t{2});
  }
  if (once_in(4)) {
    training.arguments.emplace_back("fully_shard.offload_policy", std::string("CPUOffloadPolicy"));
  }
  draw_wrap("fully_shard.modules", training);
  training.accumulates_locally = once_in(2);
}

void draw_deepspeed(ShardedCase& training) {
  training.strategy = "deepspeed";
  const int64_t stage = drawn_below(4);
  const std::string zero = "config.zero_optimization.";
  training.arguments = {{"config.zero_allow_untested_optimizer", true},  // SGD is drawn, too
                        {"config.zero_force_ds_cpu_optimizer", false},
                        {zero + "stage", stage},
                        {zero + "reduce_bucket_size", int64_t{4} << drawn_below(6)},
                        {zero + "overlap_comm", once_in(2)},
                        {zero + "reduce_scatter", !once_in(4)},
                        {zero + "use_multi_rank_bucket_allreduce", !once_in(3)},
                        {zero + "round_robin_gradients", once_in(3)},
                        {zero + "stage3_param_persistence_threshold", int64_t{drawn_below(20)}},
                        {zero + "stage3_model_persistence_threshold", int64_t{drawn_below(60)}},
                        {zero + "stage3_prefetch_bucket_size", int64_t{drawn_below(60)}},
                        {zero + "stage3_max_reuse_distance", int64_t{drawn_below(60)}},
                        {zero + "stage3_max_live_parameters", int64_t{1 + drawn_below(200)}},
                        {zero + "sub_group_size", int64_t{1 + drawn_below(40)}}};
  if (stage > 0 && once_in(3)) {
    training.arguments.emplace_back(zero + "offload_optimizer.device", std::string("cpu"));
  }
  if (stage == 3 && once_in(3)) {
    training.arguments.emplace_back(zero + "offload_param.device", std::string("cpu"));
  }
}

void draw_fairscale(ShardedCase& training) {
  training.strategy = "ddp_sharded";
  training.keeps_gradients = true;
  training.arguments = {{"reduce_buffer_size", int64_t{drawn_below(3) * 16}},
                        {"broadcast_buffers", once_in(2)}};
}

// The devices of a rank divide its two samples.
void draw_ddp2(ShardedCase& training) {
  training.strategy = "ddp2";
  training.devices = 2;
}

}  // namespace

rc::Gen<ShardedCase> sharded_cases() {
  return rc::gen::exec([] {
    ShardedCase training = any_training();
    switch (drawn_below(10)) {
      case 0: draw_fsdp(training); break;
      case 1: draw_fsdp2(training); break;
      case 2: draw_fairscale(training); break;
      case 3: draw_gradient_allreduce(training); break;
      case 4:
        training.strategy = "ddp";
        training.divides_optimizer = true;
        training.in_buckets = once_in(2);
        break;
      case 5: draw_horovod(training); break;
      case 6: draw_synchronous_server(training); break;
      case 7: draw_ddp2(training); break;
      default: draw_deepspeed(training); break;
    }
    return training;
  });
}

// A perceptron with two blocks that repeat, so that every policy wraps something.
Network network_of(const ShardedCase& training) {
  const int64_t hidden = training.hidden;
  const LayerDescription block{.kind = "Sequential",
                               .layers = {linear_of(hidden, hidden), {.kind = "ReLU"}}};
  NetworkDescription description;
  description.name = "generated";
  description.input = {4};
  description.layers = {linear_of(4, hidden, !training.freezes_first), block, block,
                        linear_of(hidden, 2)};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "a generated network is sound");
  return std::move(built.network);
}

namespace {

TrainingPlan plan_of(const ShardedCase& training, const Network& network) {
  using Sharding = OptimizerPlan::Sharding;
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.world_size = training.world_size();
  plan.barrier_is_all_reduce = false;
  plan.autocast_of_cuda = training.on_gpus;
  plan.optimizers.front().kind = training.adam ? OptimizerKind::adam : OptimizerKind::sgd;
  plan.optimizers.front().lr = 0.125;
  if (training.qadam) {
    plan.optimizers.front().kind = OptimizerKind::qadam;
    plan.optimizers.front().warmup_steps = 2;
  }
  if (training.divides_optimizer) {
    plan.optimizers.front().sharding =
        training.in_buckets ? Sharding::zero_redundancy_in_buckets : Sharding::zero_redundancy;
  }
  return plan;
}

std::unique_ptr<Strategy> strategy_of(const ShardedCase& training, const TrainingPlan& plan) {
  StrategyArguments arguments;
  for (const auto& [name, value] : training.arguments) {
    arguments.set(name, value);
  }
  const StrategyRegistry registry = standard_strategies();
  return registry.find(training.strategy)->make(plan, arguments);
}

Program train_steps(Rank& rank, const ShardedCase* training, Strategy* strategy,
                    EndOfRank* end_of_rank) {
  co_await strategy->setup(rank, Stage::fit);
  for (int64_t step = 0; step < training->steps; ++step) {
    for (int64_t micro = 0; micro < training->accumulate; ++micro) {
      StepOptions options;
      options.synchronise = micro + 1 == training->accumulate || !training->accumulates_locally;
      options.loss_factor = 1.0 / static_cast<double>(training->accumulate);
      const int64_t first = (step * training->accumulate + micro) * 2 * training->ranks;
      const Batch batch{{first + rank.id(), first + training->ranks + rank.id()}};
      co_await strategy->forward(rank, batch, options);
      co_await strategy->backward(rank, options);
    }
    co_await strategy->optimizer_step(rank, {});
    co_await strategy->zero_gradients(rank, 0, !training->keeps_gradients);
  }
  if (training->saves) {
    CheckpointRequest request;
    request.path = Bytes(25);
    const WrittenBytes written = co_await strategy->save_checkpoint(rank, request, {});
    end_of_rank->written = written.own;
  }
  co_await strategy->teardown(rank);
  co_await strategy->dismiss_servers(rank);
}

}  // namespace

Program train_sharded(Rank& rank, const ShardedCase* training, const Network* network, Seen& seen,
                      EndOfRank* end_of_rank) {
  const TrainingPlan plan = plan_of(*training, *network);
  const std::unique_ptr<Strategy> strategy = strategy_of(*training, plan);
  if (rank.id() >= training->ranks) {
    co_await strategy->serve(rank);
  } else {
    co_await train_steps(rank, training, strategy.get(), end_of_rank);
  }
  const Ticket end = rank.event();
  co_await rank.settle(end);
  const Ticket on_host = rank.event({stream(queue::compute, host_device), {}, {}});
  co_await rank.settle(on_host);
  for (const HeldParameter& held : strategy->held_parameters()) {
    end_of_rank->parts.push_back({held.parameter, held.first_element});
    seen.push_back(rank.read(held.value));
  }
}

std::ostream& operator<<(std::ostream& out, const ShardedCase& training) {
  out << fmt::format(
      "{} on {} ranks and {} servers, hidden {}, first frozen {}, adam {}, steps {}, "
      "accumulate {} (locally {}), divides optimizer {} in buckets {}, saves {}, devices {}",
      training.strategy, training.ranks, training.servers, training.hidden, training.freezes_first,
      training.adam, training.steps, training.accumulate, training.accumulates_locally,
      training.divides_optimizer, training.in_buckets, training.saves, training.devices);
  for (const auto& [name, value] : training.arguments) {
    out << ", " << name << " = ";
    if (const bool* truth = std::get_if<bool>(&value)) {
      out << *truth;
    } else if (const double* real = std::get_if<double>(&value)) {
      out << *real;
    } else if (const int64_t* number = std::get_if<int64_t>(&value)) {
      out << *number;
    } else if (const std::string* text = std::get_if<std::string>(&value)) {
      out << *text;
    } else if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
      out << (list->empty() ? "" : list->front());
    } else {
      out << "null";
    }
  }
  return out << "\n";
}

}  // namespace lockstep::test
