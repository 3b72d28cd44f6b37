#include "tests/unit/oracle/our_run.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/network/build.hpp"
#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/data_parallel/ddp.hpp"
#include "model/strategy/local_model/loss_scale.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

namespace lockstep::test {

using nlohmann::json;

namespace {

// The setting, in our words

Argument argument_from(const json& value) {
  if (value.is_boolean()) {
    return value.get<bool>();
  }
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_array()) {
    return value.get<std::vector<int64_t>>();
  }
  return value.get<int64_t>();
}

LayerDescription layer_from(const json& given) {
  LayerDescription layer;
  layer.kind = given["kind"];
  const json arguments = given.value("arguments", json::object());
  for (const auto& [name, value] : arguments.items()) {
    layer.arguments.push_back({name, argument_from(value)});
  }
  return layer;
}

Network network_from(const json& given) {
  NetworkDescription description;
  description.name = "recorded";
  description.input = given["input"].get<Shape>();
  description.input_dtype = *dtype_named(given["input_dtype"].get<std::string>());
  for (const json& layer : given["layers"]) {
    description.layers.push_back(layer_from(layer));
  }
  description.loss = layer_from(given["loss"]);
  BuildResult built = build_network(description);
  ensure(built.ok(), "a setting's network is sound");
  return built.network;
}

/// By the names that torch has for its arguments.
OptimizerSettings optimizer_of(const json& given) {
  const std::vector<const OptimizerRule*> rules = optimizer_rules();
  const auto rule = std::ranges::find(rules, given.value("kind", "SGD"), &OptimizerRule::name);
  ensure(rule != rules.end(), "a recorded optimizer is modelled");
  OptimizerSettings settings = (*rule)->defaults();
  for (const OptimizerArgument& argument : (*rule)->arguments()) {
    const auto found = given.find(argument.name);
    if (found == given.end()) {
      continue;
    }
    if (argument.truth != nullptr) {
      settings.*argument.truth = *found;
    } else {
      settings.*argument.number = *found;
    }
  }
  return settings;
}

TrainingPlan plan_from(const json& setting, const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.parameter_dtype = *dtype_named(setting["dtype"].get<std::string>());
  plan.activation_dtype =
      *dtype_named(setting.value("autocast", setting["dtype"].get<std::string>()));
  plan.autocast_of_cuda = false;
  plan.barrier_is_all_reduce = !setting.contains("horovod");
  static_cast<OptimizerSettings&>(plan.optimizers.front()) = optimizer_of(setting["optimizer"]);
  plan.seed = setting["seed"];
  plan.numerics = setting.value("values", true);
  plan.integer_values = true;
  return plan;
}

StrategyArguments::Value argument_value(const json& given) {
  if (given.is_boolean()) {
    return given.get<bool>();
  }
  if (given.is_number_integer()) {
    return given.get<int64_t>();
  }
  return given.is_number() ? StrategyArguments::Value(given.get<double>())
                           : StrategyArguments::Value(given.get<std::string>());
}

// Hooks as torch registers them, which does so on a CPU too.
HookOptions hook_from(const json& given, const TrainingPlan& plan) {
  StrategyArguments arguments;
  for (const std::string name :
       {"ddp_comm_hook", "ddp_comm_state", "ddp_comm_wrapper", "model_averaging_period"}) {
    const json value = given.value(name, json());
    if (value.is_object()) {
      for (const auto& [key, inner] : value.items()) {
        arguments.set(name + "." + key, argument_value(inner));
      }
    } else if (!value.is_null()) {
      arguments.set(name, argument_value(value));
    }
  }
  HookOptions hook = hook_options_from(arguments);
  hook.power_sgd.calls_back_in_threads = true;
  hook.power_sgd.writes_values = plan.numerics;
  return hook;
}

DataParallelOptions options_from(const json& given, const TrainingPlan& plan) {
  DataParallelOptions options;
  options.hook = hook_from(given, plan);
  options.find_unused_parameters = given.value("find_unused_parameters", false);
  options.static_graph = given.value("static_graph", false);
  options.gradient_as_bucket_view = given.value("gradient_as_bucket_view", false);
  options.broadcast_buffers = given.value("broadcast_buffers", true);
  options.join = given.value("join", false);
  options.divide_by_initial_world_size = given.value("divide_by_initial_world_size", true);
  if (given.contains("bucket_cap_mb")) {
    options.bucket_cap = Bytes(static_cast<int64_t>(given["bucket_cap_mb"].get<double>() * 0x1p20));
  }
  return options;
}

// What happened, in the recording's words

/// A list of numbers, or above 64 elements their count and a digest: the sum over i of (2 i + 1)
/// times the bits of element i as fp64 (-0 as 0), modulo 2^64.
json written(const Values& values) {
  json list = json::array();
  uint64_t digest = 0;
  for (int64_t i = 0; i < values.size(); ++i) {
    digest += (2 * static_cast<uint64_t>(i) + 1) * std::bit_cast<uint64_t>(values.number(i) + 0.0);
    if (values.size() <= 64) {
      const double number = values.number(i);
      list.push_back(std::isfinite(number) ? json(number)
                     : std::isnan(number)  ? json("nan")
                                           : json(number > 0 ? "inf" : "-inf"));
    }
  }
  if (values.size() <= 64) {
    return list;
  }
  return {{"elements", values.size()}, {"digest", std::to_string(digest)}};
}

json gradients_of(Rank& rank, Replica& replica) {
  json gradients = json::object();
  for (const Replica::Parameter& parameter : replica.parameters()) {
    if (parameter.trainable) {
      const Slice& gradient = parameter.tensor.gradient;
      gradients[replica.network().parameter_name(parameter.place)] =
          gradient.buffer == no_buffer ? json() : written(rank.read(gradient));
    }
  }
  return gradients;
}

void record_state(Rank& rank, Replica& replica, json& record) {
  for (const Replica::Parameter& parameter : replica.parameters()) {
    record["parameters"][replica.network().parameter_name(parameter.place)] =
        written(rank.read(parameter.tensor.value));
  }
  record["buffers"] = json::object();
  size_t layer = replica.network().layers.size();
  size_t tensor = 0;
  for (const Replica::Buffer& buffer : replica.buffers()) {
    tensor = buffer.layer == layer ? tensor + 1 : 0;
    layer = buffer.layer;
    const Layer& owner = replica.network().layers[layer];
    record["buffers"][owner.name + "." + owner.buffers[tensor].name] =
        written(rank.read(buffer.value));
  }
}

json collectives_of(const Journal& journal, int32_t rank) {
  json collectives = json::array();
  journal.lane(rank, 0).for_each([&](const Row& row) {
    // torch makes groups by its store.
    if (row.row == RowKind::op && is_collective(row.kind) && row.kind != OpKind::new_group) {
      collectives.push_back(
          {name_of(row.kind), name_of(row.dtype), row.bytes / size_of(row.dtype)});
    }
  });
  return collectives;
}

// The training

/// Both streams have run dry: gradients and state may be read.
Program settle_device(Rank& rank) {
  const Ticket exchanged = rank.event({communication_stream, {}, {}});
  const Ticket computed = rank.event({compute_stream, {exchanged}, {}});
  co_await rank.settle(computed);
}

Program step(Rank& rank, Strategy& strategy, const json& setting, LossScale* scale, json& record) {
  UpdateOptions options;
  options.loss_scale = scale;
  if (setting.contains("clip_norm")) {
    options.clipping = {GradientClipping::Algorithm::norm, setting["clip_norm"]};
  }
  const double before = scale == nullptr ? 1 : scale->scale();
  const size_t skipped = scale == nullptr ? 0 : scale->skipped_steps().size();
  co_await strategy.optimizer_step(rank, options);
  if (scale != nullptr) {
    record["scales"].push_back({{"scale", before},
                                {"skipped", scale->skipped_steps().size() > skipped},
                                {"growth_tracker", scale->state().growth_tracker}});
  }
  co_await strategy.zero_gradients(rank, 0, setting.value("set_to_none", true));
}

Program iterate(Rank& rank, Strategy& strategy, const json& setting, LossScale* scale,
                const json& iteration, json& record) {
  const bool values = setting.value("values", true);
  Batch batch{iteration["samples"].get<std::vector<int64_t>>()};
  StepOptions options;
  options.training = iteration.value("training", true);
  options.synchronise = iteration.value("synchronise", true);
  options.loss_factor = iteration.value("loss_factor", 1.0);
  options.skipped_layers = iteration.value("skipped_layers", std::vector<size_t>{});
  co_await strategy.forward(rank, batch, options);
  if (values) {
    co_await rank.settle(strategy.loss_ready());
    // Ours is always fp32, torch's of the model's type.
    const DType dtype = strategy.replica().plan().parameter_dtype;
    const double loss = rank.read(strategy.loss()).number(0);
    record["losses"].push_back(Values::of(dtype, {loss}).number(0));
  }
  if (!options.training) {
    co_return;
  }
  options.loss_factor *= scale == nullptr ? 1 : scale->scale_loss();
  co_await strategy.backward(rank, options);
  if (values) {
    co_await settle_device(rank);
    record["gradients"].push_back(gradients_of(rank, strategy.replica()));
  }
  if (iteration.value("step", true)) {
    co_await step(rank, strategy, setting, scale, record);
  }
}

std::optional<LossScale> loss_scale_from(const json& setting) {
  if (!setting.contains("loss_scale")) {
    return std::nullopt;
  }
  LossScale::Options options;
  options.initial = setting["loss_scale"]["init_scale"];
  options.growth_interval = setting["loss_scale"]["growth_interval"];
  return LossScale(options);
}

Program train(Rank& rank, Strategy& strategy, const json& setting, json& record) {
  co_await strategy.setup(rank, Stage::fit);
  std::optional<LossScale> scale = loss_scale_from(setting);
  try {
    for (const json& iteration : setting["iterations"][static_cast<size_t>(rank.id())]) {
      co_await iterate(rank, strategy, setting, scale ? &*scale : nullptr, iteration, record);
    }
    MirroredIterations others;
    co_await strategy.join(rank, others);
    record["ended"] = "finished";
  } catch (const ProgramException&) {
    record["ended"] = "raised";
  }
  co_await strategy.teardown(rank);
  co_await settle_device(rank);
  if (setting.value("values", true)) {
    record_state(rank, strategy.replica(), record);
  }
}

}  // namespace

Network network_of_setting(const json& setting) { return network_from(setting["network"]); }

TrainingPlan plan_of_setting(const json& setting, const Network& network) {
  return plan_from(setting, network);
}

StrategyRun our_run(const json& setting, const MakeStrategyOfSetting& make) {
  const Network network = network_from(setting["network"]);
  const TrainingPlan plan = plan_from(setting, network);
  RunOptions options;
  options.world_size = setting["world_size"];
  options.ranks_per_node = setting.value("ranks_per_node", options.world_size);
  options.numerics = plan.numerics;
  options.network = &network;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost links(options.world_size, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &links;
  StrategyRun run{json::array(), {}};
  std::vector<std::unique_ptr<Strategy>> strategies;
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    strategies.push_back(make(plan));
    run.ranks.push_back(
        {{"ended", "stuck"}, {"losses", json::array()}, {"gradients", json::array()}});
  }
  run.result = sim::simulate(options, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return train(rank, *strategies[index], setting, run.ranks[index]);
  });
  return run;
}

json our_run(const json& setting) {
  StrategyRun run = our_run(setting, [&setting](const TrainingPlan& plan) {
    return std::make_unique<DistributedDataParallel>(plan, options_from(setting["ddp"], plan));
  });
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    run.ranks[rank]["operations"] = collectives_of(*run.result.journal, static_cast<int32_t>(rank));
  }
  return run.ranks;
}

}  // namespace lockstep::test
