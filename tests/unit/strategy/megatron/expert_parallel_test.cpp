// MegatronStrategy whose ranks divide the experts of each mixture.
#include <catch2/catch.hpp>

#include "model/network/mixture.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"
#include "model/strategy/megatron/megatron.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace expert_parallel_test {

namespace {

constexpr int64_t sequence_length = 4;
constexpr int64_t embed_features = 8;
constexpr int64_t hidden_features = 12;
constexpr int64_t all_experts = 4;
constexpr int64_t choices_of_token = 2;
constexpr int64_t number_bytes = 8;

LayerDescription layer_named(std::string kind, std::vector<NamedArgument> arguments = {}) {
  return {.kind = std::move(kind), .arguments = std::move(arguments)};
}

LayerDescription residual_of(LayerDescription inside) {
  LayerDescription residual{.kind = "Residual"};
  residual.layers.push_back(layer_named("RMSNorm", {{"", embed_features}}));
  residual.layers.push_back(std::move(inside));
  return residual;
}

/// Two blocks of attention and a mixture.
Network mixtures() {
  NetworkDescription description;
  description.input = {sequence_length};
  description.input_dtype = DType::int64;
  description.layers.push_back(layer_named("Embedding", {{"", int64_t{16}}, {"", embed_features}}));
  for (int block = 0; block < 2; ++block) {
    description.layers.push_back(residual_of(layer_named(
        "CausalSelfAttention", {{"embed_dim", embed_features}, {"num_heads", int64_t{4}}})));
    description.layers.push_back(
        residual_of(layer_named("MixtureOfExperts", {{"embed_dim", embed_features},
                                                     {"hidden_dim", hidden_features},
                                                     {"num_experts", all_experts},
                                                     {"top_k", choices_of_token}})));
  }
  description.layers.push_back(layer_named("Linear", {{"", embed_features}, {"", int64_t{16}}}));
  description.loss = {.kind = "CrossEntropyLoss"};
  BuildResult built = build_network(description);
  for (const NetworkError& error : built.errors) {
    FAIL(error.path + ": " + error.message);
  }
  return with_grouped_experts(built.network);
}

struct ExpertMesh {
  int64_t tensor = 1;
  int64_t experts = 1;
  std::optional<int64_t> expert_tensor{};
  bool distributed = false;
  bool averages = false;
};

constexpr int64_t samples_of_step = 4;
constexpr int64_t train_steps = 2;

struct MixtureRun {
  std::shared_ptr<const Network> part;
  Trained trained;
};

StrategyArguments arguments_of_mesh(const ExpertMesh& sizes, int64_t data_ranks) {
  StrategyArguments arguments;
  arguments.set("tensor_model_parallel_size", sizes.tensor);
  arguments.set("sequence_parallel", sizes.tensor > 1);
  arguments.set("expert_model_parallel_size", sizes.experts);
  if (sizes.expert_tensor) {
    arguments.set("expert_tensor_parallel_size", *sizes.expert_tensor);
  }
  arguments.set("micro_batch_size", samples_of_step / data_ranks);
  arguments.set("global_batch_size", samples_of_step);
  arguments.set("ddp.use_distributed_optimizer", sizes.distributed);
  arguments.set("ddp.average_in_collective", sizes.averages);
  return arguments;
}

MixtureRun mixture_run(const Network& whole, int32_t ranks, const ExpertMesh& sizes) {
  const int64_t data_ranks = ranks / sizes.tensor;
  const StrategyArguments arguments = arguments_of_mesh(sizes, data_ranks);
  const StrategyEntry entry = megatron();
  TrainingPlan plan;
  plan.parameter_dtype = plan.activation_dtype = DType::fp64;
  plan.numerics = true;
  plan.world_size = ranks;
  plan.network = &whole;
  MixtureRun run;
  if (std::optional<CutNetwork> cut = entry.cut(whole, arguments, ranks, 8)) {
    INFO(cut->where + ": " + cut->why_not);
    REQUIRE(cut->why_not.empty());
    run.part = std::make_shared<const Network>(std::move(cut->network));
    plan.network = run.part.get();
    plan.whole_network = &whole;
  }
  const auto shard = [&](int32_t rank, int64_t step) {
    Batch batch;
    const int64_t own = samples_of_step / data_ranks;
    for (int64_t i = 0; i < own; ++i) {
      batch.samples.push_back(step * samples_of_step + rank / sizes.tensor * own + i);
    }
    return batch;
  };
  run.trained = train_simulated(
      plan, ranks, [&](const TrainingPlan& own) { return entry.make(own, arguments); }, shard,
      train_steps);
  REQUIRE_FALSE(run.trained.result.hung);
  for (const RankEnd& end : run.trained.result.ends) {
    INFO(end.message);
    REQUIRE(end.message.empty());
  }
  return run;
}

/// What the ranks of a run hold together, by parameter of the whole network. Where several
/// hold an element they agree.
std::vector<std::vector<double>> held_together(const Network& whole, const MixtureRun& run) {
  constexpr double nowhere = -1e9;
  std::vector<std::vector<double>> values;
  for (const ParameterPlace& place : whole.parameters()) {
    values.emplace_back(static_cast<size_t>(whole.parameter(place).elements()), nowhere);
  }
  for (size_t rank = 0; rank < run.trained.strategies.size(); ++rank) {
    const std::vector<HeldParameter> held = run.trained.strategies[rank]->held_parameters();
    REQUIRE(held.size() == run.trained.parameters[rank].size());
    for (size_t i = 0; i < held.size(); ++i) {
      const Values& own = run.trained.parameters[rank][i];
      for (int64_t j = 0; j < own.size(); ++j) {
        double& value =
            values[held[i].parameter].at(static_cast<size_t>(held[i].first_element + j));
        if (value != nowhere) {
          REQUIRE(value == Approx(own.number(j)).epsilon(1e-12).margin(1e-14));
        }
        value = own.number(j);
      }
    }
  }
  return values;
}

int64_t summed_bytes(const MixtureRun& run, int32_t rank, std::string_view site, OpKind kind) {
  int64_t bytes = 0;
  for (const Row& row : rows_at(run.trained.result, rank, site, kind)) {
    bytes += row.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("ranks that divide experts train what one device trains") {
  const Network whole = mixtures();
  const auto alone = held_together(whole, mixture_run(whole, 1, {}));
  const std::vector<std::pair<int32_t, ExpertMesh>> meshes{
      {2, {.experts = 2}},
      {4, {.experts = 4}},
      {4, {.experts = 2}},
      {4, {.experts = 2, .distributed = true}},
      {4, {.experts = 2, .averages = true}},
      {2, {.tensor = 2}},
      {4, {.tensor = 2, .experts = 2}},
      {8, {.tensor = 2, .experts = 2, .distributed = true, .averages = true}},
      {4, {.tensor = 2, .experts = 4, .expert_tensor = 1}},
      {8, {.tensor = 2, .experts = 2, .expert_tensor = 1}},
      {8, {.tensor = 4, .experts = 2, .expert_tensor = 1, .distributed = true}},
  };
  for (const auto& [ranks, sizes] : meshes) {
    INFO(ranks << " ranks, tensor " << sizes.tensor << ", experts " << sizes.experts
               << ", of one tensor rank " << sizes.expert_tensor.value_or(0) << ", distributed "
               << sizes.distributed);
    const auto values = held_together(whole, mixture_run(whole, ranks, sizes));
    for (size_t parameter = 0; parameter < values.size(); ++parameter) {
      for (size_t i = 0; i < values[parameter].size(); ++i) {
        INFO("parameter " << parameter << ", element " << i);
        REQUIRE(values[parameter][i] == Approx(alone[parameter][i]).epsilon(1e-9).margin(1e-11));
      }
    }
  }
}

// Every choice of a token is a row of `embed_features` numbers, which travels to its expert and
// back, and its gradient does so, too: among ranks that divide experts by all_to_all. Where two
// ranks compute an expert together, each gathers what both have got, and their terms are added
// up.
TEST_CASE("rows travel to experts as Megatron-LM's dispatcher sends them") {
  const Network whole = mixtures();
  constexpr int64_t layers = 2;
  constexpr int64_t rows =
      samples_of_step * sequence_length * choices_of_token * train_steps * layers;
  constexpr int64_t row_bytes = embed_features * number_bytes;
  const MixtureRun divided = mixture_run(whole, 4, {.experts = 4});
  for (const std::string_view site :
       {tensor_sites::dispatch, tensor_sites::combine, tensor_sites::dispatch_gradient,
        tensor_sites::combine_gradient}) {
    int64_t sent = 0;
    for (int32_t rank = 0; rank < 4; ++rank) {
      sent += summed_bytes(divided, rank, site, OpKind::all_to_all);
      CHECK(rows_at(divided.trained.result, rank, site, OpKind::all_to_all).size() ==
            train_steps * layers);
      // The numbers of all experts, of each rank.
      CHECK(summed_bytes(divided, rank, tensor_sites::announce, OpKind::all_gather) ==
            train_steps * layers * all_experts * 8);
    }
    CHECK(sent == rows * row_bytes);
  }
  const MixtureRun together_run = mixture_run(whole, 2, {.tensor = 2});
  for (int32_t rank = 0; rank < 2; ++rank) {
    CHECK(summed_bytes(together_run, rank, tensor_sites::combine, OpKind::reduce_scatter) ==
          rows * row_bytes);  // each has the rows of both
    CHECK(rows_at(together_run.trained.result, rank, tensor_sites::dispatch, OpKind::all_to_all)
              .empty());
  }
}

TEST_CASE("groups of experts are made behind all others, as by parallel_state") {
  const Network whole = mixtures();
  const MixtureRun run = mixture_run(whole, 8, {.tensor = 2, .experts = 2});
  std::vector<int64_t> sizes;
  run.trained.result.journal->lane(0, 0).for_each([&](const Row& row) {
    if (row.row == RowKind::op && row.kind == OpKind::new_group) {
      sizes.push_back(row.bytes);
    }
  });
  // dp: 2 of 4 ranks; tp-pp: 4 of 2; tp: 4 of 2; ep: 4 of 2; tp of experts: 4 of 2; tp-ep: 2 of 4;
  // dp of experts: 4 of 2.
  CHECK(sizes.size() == 2 + 4 + 4 + 4 + 4 + 2 + 4);
}

TEST_CASE("experts that cannot be divided are refused with the argument's name") {
  const Network whole = mixtures();
  const auto problem_of = [&](int32_t ranks, const ExpertMesh& sizes) {
    StrategyArguments arguments = arguments_of_mesh(sizes, 1);
    arguments.set("micro_batch_size", int64_t{1});
    arguments.set("global_batch_size", int64_t{ranks});
    TrainingPlan plan;
    plan.network = &whole;
    plan.world_size = ranks;
    try {
      megatron().make(plan, arguments);
    } catch (const ArgumentProblem& problem) {
      return problem.argument() + " " + problem.what();
    }
    return std::string();
  };
  CHECK(problem_of(8, {.experts = 8})
            .find("Number of experts should be a multiple of expert model parallel_size") !=
        std::string::npos);
  CHECK(problem_of(6, {.experts = 4})
            .starts_with(
                "expert_model_parallel_size RuntimeError: world_size (6) is not divisible by"));
  CHECK(problem_of(8, {.tensor = 4, .experts = 2, .expert_tensor = 2})
            .starts_with("expert_tensor_parallel_size "));
  CHECK(problem_of(2, {.tensor = 2, .experts = 1, .expert_tensor = 1})
            .starts_with("expert_tensor_parallel_size "));
}

}  // namespace expert_parallel_test
