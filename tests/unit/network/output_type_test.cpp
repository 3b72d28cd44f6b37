// The types of outputs under mixed precision. Those of the CPU were recorded with torch.autocast
// of PyTorch 2.11.0; the lists of CUDA are those of its documentation ("CUDA Ops that can autocast
// to float16", ".. to float32").
#include <catch2/catch.hpp>

#include "model/network/build.hpp"
#include "model/network/output_type.hpp"

using namespace lockstep;

namespace output_type_test {

namespace {

constexpr DType wide = DType::fp32;
constexpr DType narrow = DType::bf16;

Layer layer_of(LayerKind kind) {
  Layer layer;
  layer.kind = kind;
  return layer;
}

DType output_of(LayerKind kind, DType input, bool cuda = true, DType branch = narrow) {
  return output_type(layer_of(kind), input, branch, {wide, narrow, cuda});
}

}  // namespace

TEST_CASE("autocast runs products in the narrow type, whatever comes in") {
  for (const LayerKind kind : {LayerKind::linear, LayerKind::conv2d, LayerKind::multihead_attention,
                               LayerKind::causal_self_attention}) {
    CHECK(output_of(kind, wide) == narrow);
    CHECK(output_of(kind, narrow) == narrow);
  }
}

TEST_CASE("autocast leaves what is in no list to the types of its operands") {
  for (const LayerKind kind :
       {LayerKind::gelu, LayerKind::relu, LayerKind::batch_norm, LayerKind::max_pool2d,
        LayerKind::avg_pool2d, LayerKind::adaptive_avg_pool2d, LayerKind::dropout,
        LayerKind::flatten}) {
    CHECK(output_of(kind, wide) == wide);
    CHECK(output_of(kind, narrow) == narrow);
  }
  CHECK(output_of(LayerKind::embedding, DType::int64) == wide);
  CHECK(output_of(LayerKind::bias, narrow) == wide);
  CHECK(output_of(LayerKind::positional_embedding, wide) == wide);
  CHECK(output_of(LayerKind::residual_add, narrow, true, wide) == wide);
  CHECK(output_of(LayerKind::residual_add, narrow, true, narrow) == narrow);
}

TEST_CASE("layer norm gives fp32 under the autocast of CUDA, and its input's type on the CPU") {
  CHECK(output_of(LayerKind::layer_norm, narrow, true) == wide);
  CHECK(output_of(LayerKind::layer_norm, narrow, false) == narrow);
  CHECK(output_of(LayerKind::layer_norm, wide, false) == wide);
}

TEST_CASE("without mixed precision everything is of one type, but indices that are handed on") {
  const ComputingTypes half{DType::fp16, DType::fp16, true};
  CHECK(output_type(layer_of(LayerKind::embedding), DType::int64, DType::fp16, half) ==
        DType::fp16);
  CHECK(output_type(layer_of(LayerKind::layer_norm), DType::fp16, DType::fp16, half) ==
        DType::fp16);
  CHECK(output_type(layer_of(LayerKind::flatten), DType::int64, DType::fp16, half) == DType::int64);
}

}  // namespace output_type_test
