#pragma once

#include <array>
#include <span>
#include <string_view>

namespace lockstep::sim {

/// What is not on a data sheet about kernels. Each is a fraction or a factor unless its name says a
/// unit; docs/kernels.md says where each begins and what it was fitted to.
enum class KernelTerm : uint8_t {
  tensor_volta,  ///< fraction of the tensor-core peak that large products reach, by generation
  tensor_turing,
  tensor_ampere,
  tensor_ga102,  ///< GeForce and workstation Ampere, and Ada
  tensor_hopper,
  tf32,              ///< the same of TF32, as a part of that of fp16
  vector,            ///< fraction of the fp32 peak without tensor cores
  convolution,       ///< of the fraction of a product of the same size on tensor cores
  convolution_fp32,  ///< the same without tensor cores
  grouped,           ///< fraction of the fp32 peak that grouped convolutions reach
  batched,           ///< of the fraction of a product: many small products of attention
  flash,             ///< of the tensor-core fraction: the one kernel of flash attention
  memory,            ///< fraction of memory bandwidth that streaming kernels reach
  depth,             ///< inner length at which a product reaches half of its rate
  gap_us,            ///< device time of a kernel beside its work
  host_pytorch_us,   ///< host time to launch a kernel, by software
  host_compiled_us,
  host_fused_us,
  host_deepspeed_us,
  host_megatron_us,
  host_graph_us,
  passes_pytorch,  ///< element-wise traffic, as a multiple of reading and writing once
  passes_compiled,
  passes_fused,
  passes_deepspeed,
  passes_megatron,
  passes_graph,
  scores_unfused,  ///< passes over the score matrix of attention in a forward
  scores_fused,
  update_unfused,  ///< traffic of an optimizer, as a multiple of touching each tensor once
  update_fused,
  unequal_gpus,  ///< standard deviation of the speed of GPUs that are the same on paper
  contention,    ///< what kernels lose of the time in which their GPU communicates beside them
  winograd,      ///< how much faster Winograd's algorithm is, in fp32 without tensor cores
  layout,        ///< traffic of turning images to channels_last and back around a convolution on
                 ///< tensor cores, as a multiple of reading and writing them once
};
inline constexpr size_t kernel_term_count = static_cast<size_t>(KernelTerm::layout) + 1;

struct KernelConstants {
  std::array<double, kernel_term_count> values{};
  double operator[](KernelTerm term) const { return values[static_cast<size_t>(term)]; }
};

/// How a term begins before measurements move it, and how far is usual: a factor.
struct KernelTermEntry {
  KernelTerm term;
  std::string_view name;
  double usual = 1;
  double spread = 1.3;  ///< one spread is this factor
};
std::span<const KernelTermEntry> kernel_terms();

/// The usual values: what is assumed where nothing was fitted.
KernelConstants usual_kernel_constants();
/// Fitted to all rows of data/throughput that are predicted (bench/kernel_fit.cpp).
KernelConstants fitted_kernel_constants();
/// Fitted without the rows of one file of data/throughput, to judge by these; the fit to all where
/// no file of that name took part.
KernelConstants kernel_constants_without(std::string_view source);

}  // namespace lockstep::sim
