#include "sim/cost/kernel_cost.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "model/network/attention_part.hpp"
#include "model/network/batch_norm_part.hpp"
#include "sim/roofline_cost.hpp"

namespace lockstep::sim {

namespace {

Time time_of_kernel(double seconds_long) {
  constexpr double longest_s = 9e6;  // below what Time holds
  return Time(std::llround(std::min(seconds_long, longest_s) * 1e12));
}

bool is_of_layer(Kernel kernel) {
  return kernel == Kernel::layer_forward || kernel == Kernel::layer_backward;
}

/// Of parameters, or of their gradients, whose type is not that of the arithmetic.
Bytes cast_of(const Op& op) {
  Bytes bytes{};
  for (const auto* slices : {&op.list().reads, &op.list().writes}) {
    for (const Slice& slice : *slices) {
      const bool is_real = slice.dtype == DType::fp32 && op.dtype != DType::fp32;
      bytes += is_real ? slice.bytes() : Bytes{};
    }
  }
  return bytes;
}

LayerPass pass_of(const Op& op, const Layer& layer) {
  LayerPass pass{
      .layer = &layer,
      .is_backward = op.kernel == Kernel::layer_backward || op.kernel == Kernel::loss_backward,
      .dtype = op.dtype,
      .traffic = memory_traffic(op)};
  if (is_of_layer(op.kernel) && !op.list().scalars.empty()) {
    pass.samples = static_cast<int64_t>(op.list().scalars.front());
  }
  pass.is_core_alone = layer.attention_core && !pass.is_backward &&
                       op.work == (layer.attention_core->work.flops * pass.samples).count();
  pass.cast = is_of_layer(op.kernel) ? cast_of(op) : Bytes{};
  return pass;
}

/// Copies that the software launches: one for each tensor. Parts of one buffer are filled at once,
/// as torch.cat does.
int64_t tensors_written(const Op& op) {
  std::set<BufferId> buffers;
  for (const Slice& slice : op.list().writes) {
    buffers.insert(slice.buffer);
  }
  return std::max<int64_t>(1, std::ssize(buffers));
}

/// Of an attention whose positions ranks divide: what only moves, or the part of the scores by its
/// FLOPs.
double seconds_of_part(const KernelMachine& machine, const Op& op, LayerPass pass) {
  if (op.work == 0) {
    return seconds_of_stream(machine, memory_traffic(op));
  }
  pass.cast = {};
  const Pass whole = pass.is_backward ? Pass::input_gradient : Pass::forward;
  return seconds_of_pass(machine, pass) * static_cast<double>(op.work) /
         static_cast<double>(flops_of(*pass.layer, whole, pass.samples).count());
}

}  // namespace

KernelComputeCost::KernelComputeCost(KernelMachine machine, const Network* network,
                                     std::unique_ptr<ComputeCost> otherwise)
    : machine_(std::move(machine)),
      slowest_(slowest_of(machine_)),
      network_(network),
      otherwise_(std::move(otherwise)) {}

Time KernelComputeCost::duration(const Op& op, RankId rank, Time start) const {
  const bool is_of_layer_without_network = is_of_layer(op.kernel) && network_ == nullptr;
  if (op.stream.device() == host_device || op.kernel == Kernel::timed ||
      op.kernel == Kernel::roofline || op.kernel == Kernel::matrix_product ||
      is_of_layer_without_network) {
    return otherwise_->duration(op, rank, start);
  }
  return time_of_kernel(seconds_of(op) * slowest_);
}

double KernelComputeCost::seconds_of(const Op& op) const {
  switch (op.kernel) {
    case Kernel::layer_forward:
    case Kernel::layer_backward: {
      const Layer& layer = network_->layers.at(static_cast<size_t>(op.tag));
      const LayerPass pass = pass_of(op, layer);
      if (is_divided_core(layer)) {
        return seconds_of_part(machine_, op, pass);
      }
      if (is_batch_norm_part(op, layer)) {
        return seconds_of_stream(machine_, memory_traffic(op));
      }
      const double whole = seconds_of_pass(machine_, pass);
      // A backward that is submitted in two halves has its time by their FLOPs.
      const Flops both = flops_of(layer, Pass::input_gradient, pass.samples) +
                         flops_of(layer, Pass::weight_gradient, pass.samples);
      const bool is_part = pass.is_backward && both > Flops(0);
      return is_part ? whole * static_cast<double>(op.work) / static_cast<double>(both.count())
                     : whole;
    }
    case Kernel::sgd_step:
    case Kernel::adam_step:
    case Kernel::qadam_step:
    case Kernel::optimizer_step: return seconds_of_update(machine_, memory_traffic(op));
    case Kernel::copy: return seconds_of_streams(machine_, memory_traffic(op), tensors_written(op));
    default: return seconds_of_stream(machine_, memory_traffic(op));
  }
}

}  // namespace lockstep::sim
