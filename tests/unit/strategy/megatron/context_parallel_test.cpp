// MegatronStrategy whose ranks divide the positions of each sample.
#include <catch2/catch.hpp>

#include "model/strategy/local_model/context_sites.hpp"
#include "model/strategy/megatron/megatron.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace context_parallel_test {

namespace {

constexpr int64_t positions = 8;
constexpr int64_t width = 8;
constexpr int64_t samples = 2;

LayerDescription layer_of(std::string kind, std::vector<NamedArgument> arguments = {}) {
  return {.kind = std::move(kind), .arguments = std::move(arguments)};
}

constexpr NamedArgument plain(int64_t value) { return {"", value}; }

/// Two blocks of attention and nothing else, so that what travels is attention's.
Network transformer(bool is_llama, int64_t window = 0) {
  NetworkDescription description;
  description.input = {positions};
  description.input_dtype = DType::int64;
  description.layers.push_back(layer_of("Embedding", {plain(16), plain(width)}));
  if (!is_llama) {
    description.layers.push_back(layer_of("PositionalEmbedding", {plain(positions), plain(width)}));
  }
  for (int block = 0; block < 2; ++block) {
    LayerDescription residual{.kind = "Residual"};
    residual.layers.push_back(layer_of("LayerNorm", {plain(width)}));
    residual.layers.push_back(
        is_llama
            ? layer_of("GroupedQueryAttention", {{"embed_dim", width},
                                                 {"num_heads", int64_t{4}},
                                                 {"num_kv_heads", int64_t{2}},
                                                 {"sliding_window", window},
                                                 {"bias", window == 0},
                                                 {"qkv_bias", true}})
            : layer_of("CausalSelfAttention", {{"embed_dim", width}, {"num_heads", int64_t{4}}}));
    description.layers.push_back(std::move(residual));
  }
  description.layers.push_back(layer_of("Linear", {plain(width), plain(16)}));
  description.loss = {.kind = "CrossEntropyLoss"};
  BuildResult built = build_network(description);
  for (const NetworkError& error : built.errors) {
    FAIL(error.path + ": " + error.message);
  }
  return built.network;
}

/// What ranks have trained after two steps, and the cut network that they had.
struct Ran {
  std::shared_ptr<const Network> part;
  Trained trained;
};

Ran trained_by(const Network& whole, int64_t ranks, const std::string& type) {
  StrategyArguments arguments;
  arguments.set("context_parallel_size", ranks);
  arguments.set("cp_comm_type", type);
  arguments.set("micro_batch_size", samples);
  arguments.set("global_batch_size", samples);
  const StrategyEntry entry = megatron();
  TrainingPlan plan;
  plan.parameter_dtype = plan.activation_dtype = DType::fp64;
  plan.numerics = true;
  plan.world_size = static_cast<int32_t>(ranks);
  plan.network = &whole;
  Ran ran;
  if (std::optional<CutNetwork> cut = entry.cut(whole, arguments, static_cast<int32_t>(ranks), 8)) {
    REQUIRE(cut->why_not.empty());
    ran.part = std::make_shared<const Network>(std::move(cut->network));
    plan.network = ran.part.get();
    plan.whole_network = &whole;
  }
  const auto shard = [](int32_t, int64_t step) {
    return Batch{.samples = {2 * step, 2 * step + 1}};
  };
  ran.trained = train_simulated(
      plan, static_cast<int32_t>(ranks),
      [&](const TrainingPlan& of_rank) { return entry.make(of_rank, arguments); }, shard, 2);
  REQUIRE_FALSE(ran.trained.result.hung);
  for (const RankEnd& end : ran.trained.result.ends) {
    INFO(end.message);
    REQUIRE(end.message.empty());
  }
  return ran;
}

void check_like(const std::vector<Values>& values, const std::vector<Values>& expected) {
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    REQUIRE(values[i].size() == expected[i].size());
    for (int64_t j = 0; j < values[i].size(); ++j) {
      INFO("parameter " << i << ", element " << j);
      REQUIRE(values[i].number(j) == Approx(expected[i].number(j)).epsilon(1e-9).margin(1e-11));
    }
  }
}

constexpr int64_t fp64_bytes = 8;
constexpr int64_t blocks = 2;
constexpr int64_t steps = 2;

/// Bytes that a rank puts into calls of a kind at a place, over the whole training.
int64_t bytes_at(const Ran& ran, int32_t rank, std::string_view site, OpKind kind) {
  int64_t bytes = 0;
  for (const Row& row : rows_at(ran.trained.result, rank, site, kind)) {
    bytes += row.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("ranks that divide positions train what one device trains") {
  for (const bool is_llama : {false, true}) {
    const Network whole = transformer(is_llama);
    const Ran alone = trained_by(whole, 1, "p2p");
    for (const char* type : {"p2p", "all_gather", "a2a"}) {
      for (const int64_t ranks : {2, 4}) {
        if (type == std::string("a2a") && is_llama && ranks == 4) {
          continue;  // two heads of keys
        }
        INFO((is_llama ? "Llama, " : "GPT, ") << type << ", ranks: " << ranks);
        const Ran ran = trained_by(whole, ranks, type);
        for (const std::vector<Values>& of_rank : ran.trained.parameters) {
          check_like(of_rank, alone.trained.parameters.front());
        }
      }
    }
  }
}

TEST_CASE("a sliding window crosses from rank to rank") {
  const Network whole = transformer(true, 3);
  const Ran alone = trained_by(whole, 1, "p2p");
  for (const char* type : {"all_gather", "a2a"}) {
    INFO(type);
    check_like(trained_by(whole, 2, type).trained.parameters.front(),
               alone.trained.parameters.front());
  }
}

// Keys and values of a rank are 2 b s k / N numbers. Forth they make N - 1 steps of the ring; back
// they make N - 1 steps, and their gradients as many.
TEST_CASE("a ring sends keys and values to the next rank, and back with their gradients") {
  const Network whole = transformer(true);
  constexpr int64_t key_width = width / 2;
  for (const int64_t ranks : {2, 4}) {
    INFO("ranks: " << ranks);
    const Ran ran = trained_by(whole, ranks, "p2p");
    const int64_t pair = 2 * samples * positions * key_width / ranks * fp64_bytes;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      CHECK(bytes_at(ran, rank, context_sites::ring, OpKind::send) ==
            steps * blocks * (ranks - 1) * pair);
      CHECK(bytes_at(ran, rank, context_sites::ring_back, OpKind::send) ==
            steps * blocks * 2 * (ranks - 1) * pair);
      for (const Row& row : rows_at(ran.trained.result, rank, context_sites::ring, OpKind::send)) {
        CHECK(row.peer == (rank + 1) % ranks);
      }
      const std::vector<Row> back =
          rows_at(ran.trained.result, rank, context_sites::ring_back, OpKind::send);
      CHECK(std::ssize(back) == steps * blocks * ranks);
      for (const Row& row : back) {
        CHECK(row.peer == (rank + ranks - 1) % ranks);
      }
    }
  }
}

TEST_CASE("by all_gather and by heads the published exchanges travel") {
  const Network whole = transformer(false);
  constexpr int64_t ranks = 4;
  const int64_t state = samples * positions * width / ranks * fp64_bytes;  // of one rank
  const Ran gathered = trained_by(whole, ranks, "all_gather");
  // Keys and values, in both passes; gradients of the keys and values of all ranks.
  CHECK(bytes_at(gathered, 1, context_sites::gather, OpKind::all_gather) ==
        steps * blocks * 4 * state);
  CHECK(bytes_at(gathered, 1, context_sites::scatter, OpKind::reduce_scatter) ==
        steps * blocks * 2 * ranks * state);
  const Ran heads = trained_by(whole, ranks, "a2a");
  // Query, key and value to heads and the sum back; then the sum's gradient and those of the three.
  CHECK(bytes_at(heads, 2, context_sites::to_heads, OpKind::all_to_all) ==
        steps * blocks * (3 + 1) * state);
  CHECK(bytes_at(heads, 2, context_sites::to_positions, OpKind::all_to_all) ==
        steps * blocks * (1 + 3) * state);
}

TEST_CASE("sizes and types that cannot be are refused with the argument's name") {
  const auto problem_of = [](int64_t ranks, int32_t world, const std::string& type) {
    const Network whole = transformer(true, type == "p2p" ? 3 : 0);
    StrategyArguments arguments;
    arguments.set("context_parallel_size", ranks);
    arguments.set("cp_comm_type", type);
    arguments.set("micro_batch_size", samples);
    arguments.set("global_batch_size", samples);
    TrainingPlan plan;
    plan.network = &whole;
    plan.world_size = world;
    const StrategyEntry entry = megatron();
    CHECK_FALSE(entry.cut(whole, arguments, world, 8).has_value());
    try {
      entry.make(plan, arguments);
    } catch (const ArgumentProblem& problem) {
      return problem.argument() + " " + problem.what();
    }
    return std::string();
  };
  CHECK(problem_of(8, 8, "all_gather").starts_with("context_parallel_size input: AssertionError"));
  CHECK(problem_of(4, 4, "a2a").starts_with("context_parallel_size "));
  CHECK(problem_of(2, 2, "p2p").find("sliding window") != std::string::npos);
  CHECK(problem_of(2, 3, "all_gather").starts_with("context_parallel_size RuntimeError"));
  CHECK(problem_of(2, 2, "ring").starts_with("cp_comm_type ValueError"));
  CHECK(problem_of(2, 2, "a2a+p2p").starts_with("cp_comm_type "));
}

}  // namespace context_parallel_test
