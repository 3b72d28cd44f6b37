// What PipeDream and PipeDream-2BW train, by the recurrences of their papers: n stages, and w_i(t)
// the weights of stage i after t updates,
//   weight stashing  w(t + 1) = w(t) - lr grad f(w_1(t - n + 1), w_2(t - n + 2), .., w_n(t))
//   vertical sync    w(t + 1) = w(t) - lr grad f(w_1(t - n + 1), .., w_n(t - n + 1))
//   2BW              w(t + 1) = w(t) - lr grad f(w(t - 1))
// (arXiv 1806.03377, section 3.3; arXiv 2006.09503, section 3.1), where versions before the first
// are the first. The gradient is that of a chain of scalar layers, written out here.
#include "model/strategy/pipeline/asynchronous_pipeline.hpp"
#include "model/strategy/local_model/batch_values.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "model/strategy/pipeline/pipeline_plan.hpp"
#include "model/strategy/registry.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace asynchronous_pipeline_test {

namespace {

constexpr double learning_rate = 0.05;

/// y = w_n (.. (w_1 x + b_1) ..) + b_n, with the mean of (y - target)^2.
Network chain_of(int32_t layers) {
  NetworkDescription description;
  description.name = "chain";
  description.input = {1};
  for (int32_t i = 0; i < layers; ++i) {
    description.layers.push_back(linear(1, 1));
  }
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "a chain of linear layers is sound");
  return built.network;
}

struct Scalars {
  double weight = 0;
  double bias = 0;
};
using Weights = std::vector<Scalars>;  ///< by stage

/// By a version of each stage: gradients of the mean of squares over some samples.
Weights gradient_of(const Weights& by, const std::vector<double>& inputs,
                    const std::vector<double>& targets) {
  Weights gradient(by.size());
  for (size_t sample = 0; sample < inputs.size(); ++sample) {
    std::vector<double> activations{inputs[sample]};
    for (const Scalars& stage : by) {
      activations.push_back(stage.weight * activations.back() + stage.bias);
    }
    double back = 2 * (activations.back() - targets[sample]) / static_cast<double>(inputs.size());
    for (size_t stage = by.size(); stage-- > 0;) {
      gradient[stage].weight += back * activations[stage];
      gradient[stage].bias += back;
      back *= by[stage].weight;
    }
  }
  return gradient;
}

enum class Delay { stashing, vertical_sync, double_buffered };

/// `drained`: batches before the one that finds an empty pipeline.
int64_t version_of(Delay delay, int64_t batch, int64_t stage, int64_t stages, int64_t drained) {
  const int64_t behind = delay == Delay::stashing        ? stages - 1 - stage
                         : delay == Delay::vertical_sync ? stages - 1
                                                         : 1;
  return std::max(drained, batch - behind);
}

/// What one thread makes of it, batch after batch.
Weights trained_by_hand(const Weights& first, Delay delay, const TrainingPlan& plan,
                        const Shard& shard, int64_t batches, int64_t evaluate_before = 0,
                        double decay = 1) {
  std::vector<Weights> versions{first};
  for (int64_t batch = 0; batch < batches; ++batch) {
    const int64_t drained = batch >= evaluate_before ? evaluate_before : 0;
    Weights by;
    for (size_t stage = 0; stage < first.size(); ++stage) {
      const int64_t version = version_of(delay, batch, static_cast<int64_t>(stage),
                                         static_cast<int64_t>(first.size()), drained);
      by.push_back(versions[static_cast<size_t>(version)][stage]);
    }
    const Batch samples = shard(0, batch);
    std::vector<double> inputs;
    std::vector<double> targets;
    for (int64_t i = 0; i < samples.size(); ++i) {
      inputs.push_back(batch_inputs(plan, samples).number(i));
      targets.push_back(batch_targets(plan, samples).number(i));
    }
    const Weights gradient = gradient_of(by, inputs, targets);
    Weights next = versions.back();
    const double rate = learning_rate * std::pow(decay, batch);
    for (size_t stage = 0; stage < next.size(); ++stage) {
      next[stage].weight -= rate * gradient[stage].weight;
      next[stage].bias -= rate * gradient[stage].bias;
    }
    versions.push_back(next);
  }
  return versions.back();
}

struct Case {
  Delay delay = Delay::stashing;
  int32_t stages = 3;
  int32_t micro_batches = 1;
};

StrategyArguments arguments_of(const Case& training) {
  StrategyArguments arguments;
  const bool is_buffered = training.delay == Delay::double_buffered;
  arguments.set("schedule", std::string(is_buffered ? "PipeDream-2BW" : "PipeDream"));
  arguments.set("n_microbatches", int64_t{training.micro_batches});
  arguments.set("vertical_sync", training.delay == Delay::vertical_sync);
  return arguments;
}

MakeStrategy maker_of(const Case& training) {
  return [training](const TrainingPlan& plan) {
    return standard_strategies().find("pipeline")->make(plan, arguments_of(training));
  };
}

TrainingPlan plan_of(const Network& network, int32_t stages) {
  TrainingPlan plan;
  plan.network = &network;
  plan.optimizers.front().lr = learning_rate;
  plan.world_size = stages;
  plan.numerics = true;
  return plan;
}

/// All ranks get the same two samples of each micro-batch.
Shard shard_of(const Case& training) {
  const int64_t size = 2 * training.micro_batches;
  return [size](int32_t, int64_t step) {
    Batch batch;
    for (int64_t i = 0; i < size; ++i) {
      batch.samples.push_back(step * size + i);
    }
    return batch;
  };
}

Weights weights_of(const Trained& trained) {
  Weights weights;
  for (const std::vector<Values>& of_rank : trained.parameters) {
    REQUIRE(of_rank.size() == 2);
    weights.push_back({of_rank[0].number(0), of_rank[1].number(0)});
  }
  return weights;
}

void check_same(const Weights& trained, const Weights& by_hand) {
  REQUIRE(trained.size() == by_hand.size());
  for (size_t stage = 0; stage < trained.size(); ++stage) {
    CAPTURE(stage);
    CHECK(trained[stage].weight == Approx(by_hand[stage].weight).epsilon(1e-4).margin(1e-5));
    CHECK(trained[stage].bias == Approx(by_hand[stage].bias).epsilon(1e-4).margin(1e-5));
  }
}

bool differ(const Weights& one, const Weights& other) {
  return std::abs(one.front().weight - other.front().weight) > 1e-3;
}

}  // namespace

TEST_CASE("asynchronous pipelines train by the recurrences of their papers") {
  for (const Case& training :
       {Case{Delay::stashing, 2, 1}, Case{Delay::stashing, 3, 1}, Case{Delay::stashing, 4, 1},
        Case{Delay::vertical_sync, 2, 1}, Case{Delay::vertical_sync, 4, 1},
        Case{Delay::double_buffered, 2, 2}, Case{Delay::double_buffered, 3, 3},
        Case{Delay::double_buffered, 3, 5}, Case{Delay::double_buffered, 4, 4}}) {
    CAPTURE(static_cast<int>(training.delay), training.stages, training.micro_batches);
    const Network network = chain_of(training.stages);
    const TrainingPlan plan = plan_of(network, training.stages);
    const Shard shard = shard_of(training);
    const Weights first =
        weights_of(train_simulated(plan, training.stages, maker_of(training), shard, 0));
    for (const int64_t batches : {1, 2, 3, 4, 7, 11}) {
      CAPTURE(batches);
      const Trained trained =
          train_simulated(plan, training.stages, maker_of(training), shard, batches);
      REQUIRE_FALSE(trained.result.hung);
      check_same(weights_of(trained), trained_by_hand(first, training.delay, plan, shard, batches));
    }
  }
}

// The recurrences are not those of one device, nor alike: else the test above could not fail.
TEST_CASE("delays of gradients make different weights") {
  const Case training{Delay::stashing, 3, 1};
  const Network network = chain_of(training.stages);
  const TrainingPlan plan = plan_of(network, training.stages);
  const Shard shard = shard_of(training);
  const Weights first = weights_of(train_simulated(plan, 3, maker_of(training), shard, 0));
  const auto by_hand = [&](Delay delay, int64_t evaluate_before) {
    return trained_by_hand(first, delay, plan, shard, 7, evaluate_before);
  };
  CHECK(differ(by_hand(Delay::stashing, 0), by_hand(Delay::vertical_sync, 0)));
  CHECK(differ(by_hand(Delay::stashing, 0), by_hand(Delay::double_buffered, 0)));
  CHECK(differ(by_hand(Delay::stashing, 0), by_hand(Delay::stashing, 4)));
}

// An evaluation before batch 4 empties the pipeline: no later batch is computed by older weights.
TEST_CASE("an evaluation finds an empty pipeline") {
  for (const Case& training : {Case{Delay::stashing, 3, 1}, Case{Delay::vertical_sync, 3, 1},
                               Case{Delay::double_buffered, 3, 3}}) {
    CAPTURE(static_cast<int>(training.delay));
    const Network network = chain_of(training.stages);
    const TrainingPlan plan = plan_of(network, training.stages);
    const Shard shard = shard_of(training);
    const Weights first =
        weights_of(train_simulated(plan, training.stages, maker_of(training), shard, 0));
    // Step 4 is an evaluation of batch 4, which step 5 trains.
    const Shard with_evaluation = [shard](int32_t rank, int64_t step) {
      return shard(rank, step > 4 ? step - 1 : step);
    };
    const Asked asked = [](int32_t, int64_t step) {
      StepOptions options;
      options.training = step != 4;
      options.synchronise = step != 4;
      return options;
    };
    const Trained trained =
        train_simulated(plan, training.stages, maker_of(training), with_evaluation, 8, 1, asked);
    REQUIRE_FALSE(trained.result.hung);
    check_same(weights_of(trained), trained_by_hand(first, training.delay, plan, shard, 7, 4));
  }
}

namespace {

/// Batches with a learning rate of their own each, and a checkpoint behind them.
Program train_with_schedule(Rank& rank, Strategy* strategy, Shard shard, int64_t batches,
                            double decay, std::vector<Values>* saved) {
  co_await strategy->setup(rank, Stage::fit);
  for (int64_t batch = 0; batch < batches; ++batch) {
    co_await strategy->forward(rank, shard(rank.id(), batch), StepOptions());
    UpdateOptions options;
    options.learning_rate = learning_rate * std::pow(decay, batch);
    co_await strategy->optimizer_step(rank, options);
  }
  co_await strategy->save_checkpoint(rank, {}, no_site);
  const Ticket all = rank.event();
  co_await rank.settle(all);
  for (const HeldParameter& held : strategy->held_parameters()) {
    saved->push_back(rank.read(held.value));
  }
  co_await strategy->teardown(rank);
}

}  // namespace

// Each stage updates by the learning rate of the step that brought the batch, however much later;
// a checkpoint holds what has seen all batches.
TEST_CASE("a checkpoint holds all updates, each by the learning rate of its own batch") {
  constexpr double decay = 0.5;
  for (const Case& training : {Case{Delay::stashing, 3, 1}, Case{Delay::double_buffered, 3, 4}}) {
    CAPTURE(static_cast<int>(training.delay));
    const Network network = chain_of(training.stages);
    const TrainingPlan plan = plan_of(network, training.stages);
    const Shard shard = shard_of(training);
    const Weights first =
        weights_of(train_simulated(plan, training.stages, maker_of(training), shard, 0));
    RunOptions options;
    options.world_size = training.stages;
    options.numerics = true;
    options.network = &network;
    sim::ExplicitComputeCost compute;
    sim::FlatNetworkCost links(training.stages, BytesPerSecond(50'000'000'000), Time(500'000));
    sim::SimulationOptions simulation;
    simulation.compute = &compute;
    simulation.communication = &links;
    Trained trained;
    trained.parameters.resize(static_cast<size_t>(training.stages));
    for (int32_t rank = 0; rank < training.stages; ++rank) {
      trained.strategies.push_back(maker_of(training)(plan));
    }
    trained.result = sim::simulate(options, simulation, [&](Rank& rank) {
      const auto index = static_cast<size_t>(rank.id());
      return train_with_schedule(rank, trained.strategies[index].get(), shard, 5, decay,
                                 &trained.parameters[index]);
    });
    REQUIRE_FALSE(trained.result.hung);
    const auto by_hand = [&](double rate) {
      return trained_by_hand(first, training.delay, plan, shard, 5, 0, rate);
    };
    check_same(weights_of(trained), by_hand(decay));
    CHECK(differ(by_hand(decay), by_hand(1)));
  }
}

// Stage s of S keeps S - s versions (PipeDream), each stage S with vertical sync, and 2 with 2BW,
// of which the last stage needs both.
TEST_CASE("each stage keeps as many versions of its weights as batches need") {
  constexpr int32_t stages = 4;
  const double mebibyte = 1024 * 1024;
  const Network network = network_of_tensors({1, 1, 1, 1});
  const auto versions_of = [&](const Case& training) {
    TrainingPlan plan = plan_of(network, stages);
    plan.numerics = false;
    const Trained trained =
        train_simulated(plan, stages, maker_of(training), shard_of(training), 12);
    REQUIRE_FALSE(trained.result.hung);
    std::vector<double> versions;
    for (size_t rank = 0; rank < stages; ++rank) {
      const DeviceMemory& memory = trained.result.memory[rank].at(DeviceId{0});
      const auto purpose = static_cast<size_t>(Purpose::parameter);
      versions.push_back(static_cast<double>(memory.peak_by_purpose[purpose].count()) / mebibyte);
    }
    return versions;
  };
  CHECK(versions_of({Delay::stashing, stages, 1}) == std::vector<double>{4, 3, 2, 1});
  CHECK(versions_of({Delay::vertical_sync, stages, 1}) == std::vector<double>{4, 4, 4, 4});
  CHECK(versions_of({Delay::double_buffered, stages, 4}) == std::vector<double>{2, 2, 2, 2});
}

TEST_CASE("gradients are as old as the stage is far from the last one") {
  const Case training{Delay::stashing, 4, 1};
  const Network network = chain_of(training.stages);
  const TrainingPlan plan = plan_of(network, training.stages);
  const Trained trained =
      train_simulated(plan, training.stages, maker_of(training), shard_of(training), 9);
  for (int64_t stage = 0; stage < 4; ++stage) {
    CAPTURE(stage);
    const int64_t oldest = 3 - stage;
    const std::optional<Staleness> staleness =
        trained.strategies[static_cast<size_t>(stage)]->staleness();
    REQUIRE(staleness);
    // 0, 1, .. oldest, oldest, ..
    CHECK(*staleness == Staleness{9, 9 * oldest - oldest * (oldest + 1) / 2, oldest, 0});
  }
}

// A stage has something to compute at any time, once the pipeline is full; of one rank there is no
// bubble to speak of.
TEST_CASE("the bubble of an asynchronous schedule is none") {
  for (const Case& training : {Case{Delay::stashing, 4, 1}, Case{Delay::double_buffered, 4, 4},
                               Case{Delay::double_buffered, 4, 9}}) {
    CAPTURE(static_cast<int>(training.delay), training.micro_batches);
    const std::optional<PipelineBubble> bubble = ideal_bubble(arguments_of(training), 4);
    REQUIRE(bubble);
    CHECK(bubble->of_schedule == 0);
    CHECK(bubble->with_messages == 0);
  }
  CHECK_FALSE(ideal_bubble(arguments_of({Delay::stashing, 1, 1}), 1));
}

namespace {

std::string refusal_of(const StrategyArguments& arguments, int32_t ranks) {
  const Network network = chain_of(4);
  const TrainingPlan plan = plan_of(network, ranks);
  try {
    pipeline_plan_of(plan, arguments);
  } catch (const ArgumentProblem& problem) {
    return problem.argument() + ": " + problem.what();
  }
  return "";
}

StrategyArguments schedule_with(const std::string& schedule, const std::string& argument = "",
                                StrategyArguments::Value value = {}) {
  StrategyArguments arguments;
  arguments.set("schedule", schedule);
  if (!argument.empty()) {
    arguments.set(argument, std::move(value));
  }
  return arguments;
}

}  // namespace

TEST_CASE("what asynchronous pipelines cannot do is refused by the argument that asks for it") {
  using Catch::Matchers::StartsWith;
  CHECK(refusal_of(schedule_with("PipeDream"), 4).empty());
  CHECK(refusal_of(schedule_with("PipeDream-2BW"), 4).empty());
  CHECK_THAT(refusal_of(schedule_with("PipeDream", "n_microbatches", int64_t{4}), 4),
             StartsWith("n_microbatches: PipeDream updates after every minibatch"));
  CHECK_THAT(refusal_of(schedule_with("PipeDream-2BW", "n_microbatches", int64_t{3}), 4),
             StartsWith("n_microbatches: PipeDream-2BW has two versions"));
  StrategyArguments several = schedule_with("PipeDream", "stages", int64_t{4});
  several.set("pipeline_parallel_size", int64_t{2});
  CHECK_THAT(refusal_of(several, 2), StartsWith("stages: PipeDream takes one stage"));
  CHECK_THAT(refusal_of(schedule_with("PipeDream-2BW", "vertical_sync", true), 4),
             StartsWith("vertical_sync: vertical_sync is an option of PipeDream"));
  CHECK_THAT(refusal_of(schedule_with("PipeDream", "pipeline_parallel_size", int64_t{2}), 4),
             StartsWith("pipeline_parallel_size: PipeDream with several pipelines"));
  CHECK_THAT(refusal_of(schedule_with("SpecTrain"), 4),
             StartsWith("schedule: the schedule SpecTrain is not modelled"));
}

}  // namespace asynchronous_pipeline_test
