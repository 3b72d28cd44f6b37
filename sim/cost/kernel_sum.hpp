#pragma once

#include "sim/cost/kernel_price.hpp"

// What the prices of layers share: the sum over the kernels of a pass.

namespace lockstep::sim {

/// Adds up the kernels of a pass.
class KernelSum {
 public:
  explicit KernelSum(const KernelMachine& machine);

  /// The longer of its work and of its launch by the host.
  void add(double device_seconds);
  /// A kernel that a library launches without the framework between: work and gap alone.
  void add_of_library(double device_seconds);
  void stream(double bytes);
  /// Kernels between which a tensor goes through memory, as many as the software needs.
  void element_wise(double bytes);
  double seconds() const { return seconds_; }

 private:
  const KernelMachine& machine_;
  double host_;
  double seconds_ = 0;
};

/// FLOP/s that large products reach.
double product_rate(const KernelMachine& machine, DType dtype, bool on_tf32);
/// Bytes per second that large kernels reach.
double memory_rate(const KernelMachine& machine);
bool is_half(DType dtype);
/// Rows of the layer's input over its last dimension, of all samples.
int64_t rows_of(const LayerPass& pass);
/// In the forward the product itself, in the backward those of both gradients.
void add_product(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass,
                 const MatrixProduct& forward, double part);

/// MultiheadAttention and CausalSelfAttention.
void add_attention(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass);
void add_grouped_attention(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass);
void add_attention_projections(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass);
/// BiasedAttention and CrossAttention.
void add_aside_attention(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass);
void add_window_attention(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass);
void add_swiglu(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass);
void add_mixture(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass);
void add_lstm(KernelSum& sum, const KernelMachine& machine, const LayerPass& pass);

}  // namespace lockstep::sim
