// What each of the ranks has that divide the experts of a mixture.
#include <catch2/catch.hpp>

#include "model/network/build.hpp"
#include "model/network/tensor_parallel/expert_cut.hpp"

using namespace lockstep;

namespace expert_cut_test {

namespace {

constexpr int64_t tokens = 16;
constexpr int64_t embed = 8;
constexpr int64_t hidden = 12;

Network one_mixture(const std::vector<NamedArgument>& more = {}) {
  LayerDescription layer{.kind = "MixtureOfExperts"};
  layer.arguments = {{"embed_dim", embed},
                     {"hidden_dim", hidden},
                     {"num_experts", int64_t{4}},
                     {"top_k", int64_t{2}}};
  layer.arguments.insert(layer.arguments.end(), more.begin(), more.end());
  NetworkDescription description;
  description.input = {tokens, embed};
  description.layers = {layer};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  REQUIRE(built.ok());
  return built.network;
}

}  // namespace

TEST_CASE("a tensor cut along two dimensions has its parts where numpy's slices are") {
  // numpy.arange(24).reshape(4, 2, 3)[2:, :, 1:2] etc.: 2 parts of 3 along the last of 4 x 2 x 3.
  const TensorCut cut{
      .whole = {4, 2, 3}, .dimension = 0, .parts = 2, .inner_dimension = 2, .inner_parts = 3};
  CHECK(cut.part_shape() == Shape{2, 2, 1});
  std::vector<int64_t> places;
  for (const TensorRun& run : cut.runs_of(4)) {  // part 1 of the experts, part 1 of the features
    CHECK(run.in_part == std::ssize(places));
    for (int64_t i = 0; i < run.elements; ++i) {
      places.push_back(run.in_whole + i);
    }
  }
  CHECK(places == std::vector<int64_t>{13, 16, 19, 22});
}

TEST_CASE("experts are grouped, and divided by number and by hidden features") {
  const CutNetwork cut = cut_by_experts(one_mixture(), {.ranks = 2, .tensor_ranks = 3});
  REQUIRE(cut.why_not.empty());
  const Layer& layer = cut.network.layers.front();
  REQUIRE(layer.parameters.size() == 4);
  CHECK(layer.parameters[0].shape == Shape{4, embed});  // each routes its tokens
  CHECK(layer.parameters[1].shape == Shape{2, hidden / 3, embed});
  CHECK(layer.parameters[2].shape == Shape{2, embed, hidden / 3});
  CHECK(layer.parameters[3].shape == Shape{2, hidden / 3, embed});
  CHECK(layer.parameters[2].cut->inner_dimension == 2);
  // As many multiply-adds as its own tokens make: it computes a third of the features of the tokens
  // of three ranks. 2 of 4 experts of three products, and the router.
  CHECK(layer.work_of(Pass::forward).flops ==
        Flops(2 * tokens * (2 * 3 * embed * hidden + embed * 4)));
}

TEST_CASE("experts that Megatron-LM cannot divide are refused") {
  CHECK(cut_by_experts(one_mixture(), {.ranks = 3}).why_not.starts_with("AssertionError"));
  CHECK(cut_by_experts(one_mixture(), {.ranks = 2, .tensor_ranks = 5})
            .why_not.find("12 is not divisible by 5") != std::string::npos);
  const CutNetwork dropping =
      cut_by_experts(one_mixture({{"capacity_factor", 1.0}}), {.ranks = 2, .tensor_ranks = 1});
  CHECK(dropping.is_unmodelled);
}

}  // namespace expert_cut_test
