#include "sim/cost/kernel_ranges.hpp"

#include <algorithm>

namespace lockstep::sim {

namespace {

bool is_convolution(LayerKind kind) {
  return kind == LayerKind::conv1d || kind == LayerKind::conv2d ||
         kind == LayerKind::conv_transpose2d;
}

}  // namespace

std::optional<KernelRange> kernel_range(std::string_view software, bool convolves) {
  const std::span<const KernelRange> ranges = kernel_ranges();
  for (const std::string_view name : {software, std::string_view()}) {
    const auto found = std::ranges::find_if(ranges, [&](const KernelRange& each) {
      return each.software == name && each.convolves == convolves;
    });
    if (found != ranges.end()) {
      return *found;
    }
  }
  return std::nullopt;
}

bool convolves(const Network& network) {
  Flops all{};
  Flops of_convolutions{};
  for (const Layer& layer : network.layers) {
    const Flops flops = flops_of(layer, Pass::forward, 1);
    all += flops;
    of_convolutions += is_convolution(layer.kind) ? flops : Flops{};
  }
  return of_convolutions + of_convolutions > all;
}

}  // namespace lockstep::sim
