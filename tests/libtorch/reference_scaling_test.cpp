// Layers of mobile and windowed networks, and of encoders and decoders: the simulator's numbers are
// LibTorch's, forward and backward.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::reference_scaling_test {

namespace {

constexpr NamedArgument whole_number(int64_t value) { return {"", value}; }

/// A chain of at most some dozen sums of at most some dozen numbers: below 2000 units of roundoff
/// of the greatest number on the way.
void check_close(const Values& ours, const Values& theirs, DType dtype) {
  CHECK(distance(ours, theirs) <= 2000 * unit_roundoff(dtype) * std::max(1.0, greatest(theirs)));
}

/// The layer of this kind, which may stand within others.
void compare_kind(const Network& network, LayerKind kind) {
  const auto found = std::ranges::find(network.layers, kind, &Layer::kind);
  REQUIRE(found != network.layers.end());
  const auto index = static_cast<size_t>(found - network.layers.begin());
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    INFO(name_of(kind) << " " << name_of(dtype));
    const LayerValues values = values_for(*found, dtype, 3, reals);
    const LayerResult ours = run_layer(libtorch(), network, index, values);
    const LayerResult theirs = run_layer(reference(), network, index, values);
    check_close(ours.output, theirs.output, dtype);
    check_close(ours.input_gradient, theirs.input_gradient, dtype);
    REQUIRE(ours.gradients.size() == theirs.gradients.size());
    for (size_t i = 0; i < ours.gradients.size(); ++i) {
      INFO("gradient " << i);
      check_close(ours.gradients[i], theirs.gradients[i], dtype);
      CHECK(greatest(theirs.gradients[i]) > 0);
    }
  }
}

void compare_bits(const Network& network) {
  for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16, DType::fp16}) {
    INFO(name_of(network.layers[0].kind) << " " << name_of(dtype));
    const LayerValues values = values_for(network.layers[0], dtype, 2, integers);
    CHECK(run_layer(libtorch(), network, 0, values) == run_layer(reference(), network, 0, values));
  }
}

LayerDescription windows(int64_t window, int64_t shift, bool bias) {
  return layer("WindowAttention", {{"dim", int64_t{4}},
                                   {"window_size", window},
                                   {"shift_size", shift},
                                   {"num_heads", int64_t{2}},
                                   {"qkv_bias", bias},
                                   {"proj_bias", bias}});
}

/// Six positions of width 6; `of` ends in what `reader` reads.
Network beside(std::vector<LayerDescription> of, LayerDescription reader) {
  LayerDescription aside = layer("Aside");
  aside.shortcut = std::move(of);
  aside.layers = {std::move(reader)};
  return network_of({6, 6}, {std::move(aside)});
}

}  // namespace

TEST_CASE("layers that scale are LibTorch's") {
  compare_kind(
      network_of({3, 2, 4}, {layer("LayerScale", {{"shape", std::vector<int64_t>{3, 1, 1}}})}),
      LayerKind::layer_scale);
  compare_kind(network_of({2, 4}, {layer("LayerScale", {{"shape", std::vector<int64_t>{1, 4}}})}),
               LayerKind::layer_scale);
  compare_kind(network_of({5}, {layer("Scale", {{"factor", 0.3}})}), LayerKind::scale);
}

TEST_CASE("a Multiply has the values and both gradients of LibTorch") {
  LayerDescription excitation = layer("Multiply");
  excitation.layers = {layer("AdaptiveAvgPool2d", {whole_number(1)})};
  compare_kind(network_of({3, 2, 4}, {excitation}), LayerKind::residual_multiply);
  excitation.layers = {layer("Sigmoid")};
  compare_kind(network_of({3, 2}, {excitation}), LayerKind::residual_multiply);
}

TEST_CASE("orders of dimensions, merged patches and chosen positions agree bit for bit") {
  compare_bits(
      network_of({3, 2, 4}, {layer("Permute", {{"dims", std::vector<int64_t>{0, 2, 3, 1}}})}));
  compare_bits(network_of({4, 2, 3}, {layer("PatchMerging")}));
  compare_bits(network_of({3, 5, 2}, {layer("PatchMerging")}));
  compare_bits(
      network_of({5, 3}, {layer("Positions", {{"first", int64_t{1}}, {"count", int64_t{3}}})}));
}

TEST_CASE("attention in windows is LibTorch's, shifted and in margins of zeros") {
  compare_kind(network_of({4, 4, 4}, {windows(2, 0, true)}), LayerKind::window_attention);
  compare_kind(network_of({4, 6, 4}, {windows(2, 1, false)}), LayerKind::window_attention);
  compare_kind(network_of({5, 7, 4}, {windows(3, 1, true)}), LayerKind::window_attention);
  // One window is as wide as the image: no shift that way.
  compare_kind(network_of({3, 5, 4}, {windows(3, 1, true)}), LayerKind::window_attention);
}

TEST_CASE("T5's bias and the attention that reads it are LibTorch's") {
  for (const bool both : {true, false}) {
    LayerDescription bias = layer("RelativePositionBias", {{"num_heads", int64_t{2}},
                                                           {"num_buckets", int64_t{8}},
                                                           {"max_distance", int64_t{6}},
                                                           {"bidirectional", both}});
    const Network network = beside({bias}, layer("BiasedAttention", {{"embed_dim", int64_t{6}},
                                                                     {"num_heads", int64_t{2}},
                                                                     {"head_dim", int64_t{4}},
                                                                     {"causal", !both},
                                                                     {"scaled", both},
                                                                     {"bias", both}}));
    compare_kind(network, LayerKind::relative_position_bias);
    compare_kind(network, LayerKind::biased_attention);
  }
}

TEST_CASE("attention to what was put aside is LibTorch's") {
  for (const bool bias : {true, false}) {
    const Network network = beside({layer("Positions", {{"count", int64_t{4}}}),
                                    layer("Linear", {whole_number(6), whole_number(5)})},
                                   layer("CrossAttention", {{"embed_dim", int64_t{6}},
                                                            {"num_heads", int64_t{3}},
                                                            {"scaled", bias},
                                                            {"bias", bias}}));
    compare_kind(network, LayerKind::cross_attention);
  }
}

}  // namespace lockstep::libtorch_test::reference_scaling_test
