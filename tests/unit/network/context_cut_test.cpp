// What each rank has of a network whose positions ranks divide.
#include "model/network/tensor_parallel/context_cut.hpp"

#include <catch2/catch.hpp>

#include "model/network/internal_tensors.hpp"
#include "model/network/presets.hpp"

using namespace lockstep;

namespace context_cut_test {

namespace {

Network preset_network(const std::string& name, std::vector<NamedArgument> arguments = {}) {
  const auto description =
      std::get<NetworkDescription>(describe_preset(name, std::move(arguments)));
  BuildResult built = build_network(description);
  REQUIRE(built.ok());
  return built.network;
}

CutNetwork divided(const Network& whole, int32_t ranks, ContextExchange exchange) {
  CutNetwork cut = cut_by_positions(whole, ranks, exchange);
  INFO(cut.where << ": " << cut.why_not);
  REQUIRE(cut.why_not.empty());
  return cut;
}

Flops products_of(const Network& network, Pass pass) {
  Flops sum(0);
  for (const Layer& layer : network.layers) {
    sum += flops_of(layer, pass, 1);
  }
  return sum;
}

}  // namespace

TEST_CASE("every rank has all parameters, under their names and in their order") {
  for (const char* name : {"llama2-7b", "gpt2"}) {
    const Network whole = preset_network(name);
    const CutNetwork cut = divided(whole, 8, ContextExchange::ring);
    const std::vector<ParameterPlace> parts = cut.network.parameters();
    const std::vector<ParameterPlace> wholes = whole.parameters();
    REQUIRE(parts.size() == wholes.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      INFO(whole.parameter_name(wholes[i]));
      CHECK(cut.network.parameter_name(parts[i]) == whole.parameter_name(wholes[i]));
      CHECK(cut.network.parameter(parts[i]).shape == whole.parameter(wholes[i]).shape);
      CHECK_FALSE(cut.network.parameter(parts[i]).cut.has_value());
    }
  }
}

TEST_CASE("ranks divide the work evenly, whatever travels") {
  const Network whole = preset_network("llama2-7b");
  for (const ContextExchange exchange :
       {ContextExchange::all_gather, ContextExchange::all_to_all, ContextExchange::ring}) {
    const CutNetwork cut = divided(whole, 4, exchange);
    CHECK(cut.network.input == Shape{whole.input.front() / 4});
    CHECK(cut.network.loss.input == Shape{whole.input.front() / 4, whole.loss.input.back()});
    for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
      CHECK(products_of(cut.network, pass) * 4 == products_of(whole, pass));
    }
  }
}

TEST_CASE("a rank keeps the activations of its positions") {
  const Network whole = preset_network("llama2-7b");
  const Bytes all = whole.activation_bytes(DType::bf16);
  CHECK(divided(whole, 8, ContextExchange::ring).network.activation_bytes(DType::bf16) == all / 8);
  CHECK(divided(whole, 8, ContextExchange::all_gather).network.activation_bytes(DType::bf16) ==
        all / 8);
  // By heads the sum is kept once more, of the positions that this rank has not.
  const Bytes sums = 2_B * (whole.input.front() * 4096 * 32);
  CHECK(divided(whole, 8, ContextExchange::all_to_all).network.activation_bytes(DType::bf16) ==
        (all + sums) / 8);
}

// A flash kernel holds no matrix of scores, which would be heads x positions^2 numbers.
TEST_CASE("no way of attending has scores in memory while it runs") {
  const Network whole = preset_network("llama2-7b");
  for (const ContextExchange exchange :
       {ContextExchange::all_gather, ContextExchange::all_to_all, ContextExchange::ring}) {
    const Network part = divided(whole, 8, exchange).network;
    for (const Layer& layer : part.layers) {
      if (layer.kind == LayerKind::attention_core) {
        CHECK(forward_workspace(layer, DType::bf16) == 0_B);
        // Three states beside what is kept: two gradients, and what is joined of three.
        CHECK(backward_workspace(layer, DType::bf16) == 2_B * (3 * layer.input[0] * 4096));
      }
    }
  }
}

TEST_CASE("what cannot be divided by positions is refused with its layer") {
  const Network llama = preset_network("llama2-70b");  // 8 heads of keys and values
  const CutNetwork heads = cut_by_positions(llama, 16, ContextExchange::all_to_all);
  CHECK(heads.where.ends_with("self_attn core"));
  CHECK(heads.why_not.find("divisible by CP size") != std::string::npos);
  CHECK_FALSE(heads.is_unmodelled);
  CHECK(cut_by_positions(llama, 16, ContextExchange::ring).why_not.empty());
  const CutNetwork length = cut_by_positions(llama, 24, ContextExchange::ring);
  CHECK(length.where == "input");
  const Network window = preset_network("mistral-7b", {{"seq_len", int64_t{8192}}});
  CHECK_FALSE(cut_by_positions(window, 2, ContextExchange::ring).why_not.empty());
  CHECK(cut_by_positions(window, 2, ContextExchange::all_gather).why_not.empty());
  const BuildResult flat = build_network(
      {.input = Shape{8, 4}, .layers = {{.kind = "Flatten"}}, .loss = {.kind = "MSELoss"}});
  REQUIRE(flat.ok());
  CHECK(cut_by_positions(flat.network, 2, ContextExchange::ring).is_unmodelled);
}

}  // namespace context_cut_test
