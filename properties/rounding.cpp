#include "properties/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {

namespace {

constexpr int64_t scaling = 8;
constexpr int64_t optimizer_operations = 16;

// Rows of samples that one weight meets: one a sample, or one a position of a sequence or image.
int64_t positions_of(const Layer& layer) {
  const int64_t width = layer.input.empty() ? 1 : layer.input.back();
  return std::max<int64_t>(1, elements_of(layer.input) / std::max<int64_t>(1, width));
}

int64_t forward_and_backward(const Layer& layer, int64_t samples) {
  switch (layer.kind) {
    case LayerKind::linear: {
      const auto& linear = std::get<LinearArguments>(layer.arguments);
      return linear.in_features + 1 + linear.out_features;
    }
    case LayerKind::bias:
    case LayerKind::residual_add: return 1;
    case LayerKind::batch_norm: return 4 * samples * elements_of(layer.input) + 2 * scaling;
    case LayerKind::cross_entropy_loss:
    case LayerKind::mse_loss: return elements_of(layer.input) + scaling;
    default: return 0;
  }
}

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::fp64: return 0x1p-53;
    case DType::fp32: return 0x1p-24;
    case DType::bf16: return 0x1p-8;
    case DType::fp16: return 0x1p-11;
    case DType::int64:
    case DType::int32:
    case DType::uint8: return 0;
  }
  return 0;
}

double gamma(int64_t operations, DType dtype) {
  const double product = static_cast<double>(operations) * unit_roundoff(dtype);
  return product >= 1 ? std::numeric_limits<double>::infinity() : product / (1 - product);
}

bool beyond_rounding(double here, double there, double bound) {
  // A NaN on one side compares false with every bound.
  return (std::isfinite(here) || std::isfinite(there)) && !(std::abs(here - there) <= bound);
}

int64_t rounded_operations(const Network& network, const TrainingSize& size) {
  int64_t chain = forward_and_backward(network.loss, size.samples);
  int64_t positions = 1;
  for (const Layer& layer : network.layers) {
    chain += forward_and_backward(layer, size.samples);
    positions = std::max(positions, positions_of(layer));
  }
  chain += size.samples * positions + size.parts + 2 + optimizer_operations;
  if (size.clips_norm) {
    chain += network.trainable_elements() + scaling;
  }
  return chain * std::max<int64_t>(1, size.steps);
}

}  // namespace lockstep
