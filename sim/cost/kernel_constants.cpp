#include "sim/cost/kernel_constants.hpp"

#include <algorithm>

#include "sim/cost/kernel_fits.hpp"

namespace lockstep::sim {

namespace {

using enum KernelTerm;

constexpr KernelTermEntry kernel_term_entries[] = {
    {tensor_volta, "tensor_volta", 0.75, 1.2},
    {tensor_turing, "tensor_turing", 0.6, 1.3},
    {tensor_ampere, "tensor_ampere", 0.8, 1.2},
    {tensor_ga102, "tensor_ga102", 0.8, 1.3},
    {tensor_hopper, "tensor_hopper", 0.65, 1.2},
    {tf32, "tf32", 0.9, 1.2},
    {vector, "vector", 0.85, 1.15},
    {convolution, "convolution", 0.7, 1.3},
    {convolution_fp32, "convolution_fp32", 1.0, 1.3},
    {grouped, "grouped", 0.3, 1.5},
    {batched, "batched", 0.6, 1.3},
    {flash, "flash", 0.6, 1.3},
    {memory, "memory", 0.8, 1.15},
    {depth, "depth", 100, 1.5},
    {gap_us, "gap_us", 2, 1.5},
    {host_pytorch_us, "host_pytorch_us", 8, 1.5},
    {host_compiled_us, "host_compiled_us", 4, 1.5},
    {host_fused_us, "host_fused_us", 6, 1.5},
    {host_deepspeed_us, "host_deepspeed_us", 6, 1.5},
    {host_megatron_us, "host_megatron_us", 6, 1.5},
    {host_graph_us, "host_graph_us", 4, 1.5},
    {passes_pytorch, "passes_pytorch", 1.1, 1.3},
    {passes_compiled, "passes_compiled", 0.7, 1.3},
    {passes_fused, "passes_fused", 0.8, 1.3},
    {passes_deepspeed, "passes_deepspeed", 0.8, 1.3},
    {passes_megatron, "passes_megatron", 0.8, 1.3},
    {passes_graph, "passes_graph", 0.9, 1.3},
    {scores_unfused, "scores_unfused", 12, 1.3},
    {scores_fused, "scores_fused", 7, 1.3},
    {update_unfused, "update_unfused", 2, 1.4},
    {update_fused, "update_fused", 1.2, 1.4},
    {unequal_gpus, "unequal_gpus", 0.015, 1.5},
    {contention, "contention", 0.19, 1.5},
    {winograd, "winograd", 1.6, 1.3},
    {layout, "layout", 1, 1.3},
};
static_assert(std::size(kernel_term_entries) == kernel_term_count);

}  // namespace

std::span<const KernelTermEntry> kernel_terms() { return kernel_term_entries; }

KernelConstants usual_kernel_constants() {
  KernelConstants constants;
  for (const KernelTermEntry& entry : kernel_term_entries) {
    constants.values[static_cast<size_t>(entry.term)] = entry.usual;
  }
  return constants;
}

KernelConstants kernel_constants_without(std::string_view source) {
  const std::span<const KernelFitEntry> fits = kernel_fits();
  const auto found = std::ranges::find(fits, source, &KernelFitEntry::without);
  return found == fits.end() ? fitted_kernel_constants() : KernelConstants{found->values};
}

KernelConstants fitted_kernel_constants() {
  const std::span<const KernelFitEntry> fits = kernel_fits();
  return fits.empty() ? usual_kernel_constants() : KernelConstants{fits.front().values};
}

}  // namespace lockstep::sim
