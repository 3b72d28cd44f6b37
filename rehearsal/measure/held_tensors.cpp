#include "rehearsal/measure/held_tensors.hpp"

#include <algorithm>

#include "model/trainer/data/data_loader.hpp"

namespace lockstep::cli {

namespace {

int64_t largest_batch(const Scenario& scenario) {
  int64_t largest = 0;
  const int64_t otherwise = LoaderSettings().batch_size;
  if (scenario.data) {
    const LoaderSpec& common = scenario.data->common;
    for (const auto* stage : {&scenario.data->train, &scenario.data->val, &scenario.data->test,
                              &scenario.data->predict}) {
      for (const LoaderSpec& loader : *stage) {
        const auto& given = loader.batch_size ? loader.batch_size : common.batch_size;
        const bool has_data = loader.samples || loader.tokens || loader.batches;
        largest = std::max(largest, !has_data ? 0 : given ? given->value : otherwise);
      }
    }
  }
  return largest == 0 ? otherwise : largest;
}

// Scores of one sample, where they are formed because dropout is drawn from them: no fused kernel
// takes our own random numbers.
int64_t formed_scores(const Layer& layer) {
  const auto* attention = std::get_if<AttentionArguments>(&layer.arguments);
  return attention == nullptr || attention->dropout == 0
             ? 0
             : attention->num_heads * layer.input[0] * layer.input[0];
}

// Probabilities, their mask, and what the mask leaves of them.
Bytes saved_scores(const Network& network, DType dtype) {
  constexpr int64_t saved = 3;
  Bytes bytes{};
  for (const Layer& layer : network.layers) {
    bytes += Bytes(size_of(dtype)) * (saved * formed_scores(layer));
  }
  return bytes;
}

// The patches of one sample, as a convolution without a fused kernel (im2col) lays them out.
int64_t patches(const Layer& layer) {
  const auto* conv = std::get_if<Conv2dArguments>(&layer.arguments);
  if (conv == nullptr || layer.output.empty()) {
    return 0;
  }
  const int64_t positions = elements_of(layer.output) / conv->out_channels;
  return positions * conv->in_channels * conv->kernel_size[0] * conv->kernel_size[1];
}

// In the widest type that a copy may have. Of weights a kernel of an optimizer or of clipping reads
// four arrays: parameter, gradient and two states.
Bytes largest_kernel(const Network& network, int64_t samples) {
  constexpr int64_t widest = 8;
  constexpr int64_t arrays_of_weights = 4;
  int64_t elements = 0;
  for (const Layer& layer : network.layers) {
    const int64_t of_sample = elements_of(layer.input) + elements_of(layer.output) +
                              2 * formed_scores(layer) + patches(layer);
    elements = std::max(elements, samples * of_sample + arrays_of_weights * layer.weight_elements);
  }
  return Bytes(widest * elements);
}

Bytes allowance_of(const OneRun& real) {
  const Network& network = *real.preparation.network;
  const DType dtype = real.preparation.plan.activation_dtype;
  const int64_t samples = largest_batch(*real.preparation.scenario);
  const Bytes graphs = (network.activation_bytes(dtype) + saved_scores(network, dtype)) * samples;
  return (graphs + largest_kernel(network, samples)) * real.preparation.options.devices_per_rank;
}

}  // namespace

std::optional<HeldTensors> held_tensors(const OneRun& real) {
  const auto& peaks = real.result.tensor_peak;
  const Network* network = real.preparation.network.get();
  if (network == nullptr || !network->modules.empty() || !real.preparation.options.numerics) {
    return std::nullopt;
  }
  std::optional<HeldTensors> most;
  for (size_t rank = 0; rank < peaks.size(); ++rank) {
    if (!peaks[rank]) {
      continue;
    }
    HeldTensors here{static_cast<int32_t>(rank), *peaks[rank], {}, {}};
    for (const auto& [device, memory] : real.result.memory[rank]) {
      here.accounted += memory.peak;
    }
    if (!most || here.held - here.accounted > most->held - most->accounted) {
      most = here;
    }
  }
  if (most) {
    most->allowance = allowance_of(real);
  }
  return most;
}

}  // namespace lockstep::cli
