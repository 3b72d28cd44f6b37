#include "model/strategy/local_model/shared_batch_norm.hpp"

#include <array>

#include "model/network/batch_norm_part.hpp"
#include "model/strategy/local_model/batch_norm_sites.hpp"
#include "model/strategy/local_model/layer_kernels.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

// torch.nn.functional.batch_norm looks at the shape, and SyncBatchNorm.forward at the device of its
// input wherever a process group exists, of one rank, too.
void check_batch_norm(const Layer& layer, const BatchNormForward& forward,
                      const BatchNormPlace& place) {
  const auto* arguments = std::get_if<BatchNormArguments>(&layer.arguments);
  if (arguments == nullptr) {
    return;
  }
  const bool is_shared = place.is_converted && forward.training;
  if (is_shared && !place.on_gpu) {
    throw ProgramException(site_id(replica_sites::layer_forward),
                           "SyncBatchNorm expected input tensor to be on GPU or XPU or "
                           "privateuseone; leave out sync_batchnorm on the CPU");
  }
  if ((!is_shared || place.ranks == 1) && (forward.training || !arguments->track_running_stats) &&
      forward.samples * elements_of(layer.input) <= arguments->num_features) {
    throw ProgramException(site_id(replica_sites::layer_forward),
                           "expected more than 1 value per channel when training batch norm; give "
                           "every device, and in a pipeline every micro-batch, at least 2 samples, "
                           "or set drop_last");
  }
}

namespace {

struct BatchNormSizes {
  int64_t statistics = 0;  ///< two numbers for each channel, and how many values are behind them
  int64_t sums = 0;
  DType dtype = DType::fp32;  ///< that of sums: 16 bit numbers are added up in fp32
};

BatchNormSizes sizes_of(const Layer& layer, DType activations) {
  const int64_t channels = std::get<BatchNormArguments>(layer.arguments).num_features;
  return {2 * channels + 1, 2 * channels, activations == DType::fp64 ? DType::fp64 : DType::fp32};
}

struct PartCall {
  Kernel kernel = Kernel::layer_forward;
  BatchNormPart part = BatchNormPart::own;
  Bytes traffic{};
  std::vector<Slice> reads{};
  std::vector<Slice> writes{};
};

/// Queues a part. Without values it has no operands, as other layers.
Ticket compute_part_of_norm(Rank& rank, const TrainingPlan& plan, KernelCall call,
                            const PartCall& part, std::span<const double> scalars,
                            const ComputeOptions& options) {
  call.kernel = part.kernel;
  call.computes_in = plan.activation_dtype;
  call.memory_traffic = part.traffic;
  call.scalars = scalars;
  if (plan.numerics) {
    call.reads = part.reads;
    call.writes = part.writes;
  }
  return rank.compute(call, options);
}

}  // namespace

// c10d runs both on the default group: on NCCL the device waits, and the host for the gathered
// counts, of which it keeps those that are not 0.
Ticket SharedBatchNorm::forward(Rank& rank, LayerRun& run, const LayerTurn& turn,
                                const Slice& output) {
  const Layer& layer = layer_of(run);
  const BatchNormSizes sizes = sizes_of(layer, plan().activation_dtype);
  const Slice own = rank.allocate(Purpose::communication, sizes.dtype, sizes.statistics, device());
  const Slice all = rank.allocate(Purpose::communication, sizes.dtype,
                                  sizes.statistics * rank.world_size(), device());
  run.own_rare().statistics = transient(rank, sizes.statistics, sizes.dtype);
  const SiteId forward_site =
      site_id(turn.again ? replica_sites::recompute : replica_sites::layer_forward);
  const Bytes traffic = LayerKernels(state_, now_).forward_price(run, turn).memory_traffic;
  KernelCall call;
  call.layer = static_cast<int32_t>(run.layer);
  const auto scalars = [&](BatchNormPart part) {
    return std::array{static_cast<double>(now_.samples), 1.0, 0.0, static_cast<double>(part)};
  };
  // Of the three passes over the input that a batch norm makes one is for the statistics.
  compute_part_of_norm(rank, plan(), call,
                       {Kernel::layer_forward, BatchNormPart::own, traffic / 3, {run.input}, {own}},
                       scalars(BatchNormPart::own), {compute(), {}, forward_site});
  const SiteId site = site_id(batch_norm_sites::gather_statistics);
  const Ticket ready = rank.event({compute(), {}, site});
  const Ticket gathered =
      rank.all_gather(world_group, own, all, {communication_stream, {ready}, site});
  rank.event({compute(), {gathered}, site});
  std::vector<Slice> reads{run.input};
  for (const size_t parameter : parameters_of(run.layer)) {
    reads.push_back(value_of(parameter));
  }
  reads.push_back(all);
  std::vector<Slice> writes{output, run.rare().statistics};
  if (LayerKernels::updates_buffers(layer, run, turn)) {
    for (const size_t buffer : state_.buffers_of(run.layer)) {
      writes.push_back(state_.buffers()[buffer].value);
    }
  }
  compute_part_of_norm(rank, plan(), call,
                       {Kernel::layer_forward, BatchNormPart::together, traffic - traffic / 3,
                        std::move(reads), std::move(writes)},
                       scalars(BatchNormPart::together), {compute(), {}, forward_site});
  rank.release(own);
  rank.release(all);
  return gathered;
}

// The gradients of weight and bias are this rank's: they travel with those of other layers.
Ticket SharedBatchNorm::backward(Rank& rank, const LayerRun& run,
                                 const std::vector<Slice>& gradients) {
  const Layer& layer = layer_of(run);
  const BatchNormSizes sizes = sizes_of(layer, plan().activation_dtype);
  const ComputeOptions here{compute(), {}, site_id(replica_sites::layer_backward)};
  const Bytes traffic =
      LayerKernels(state_, now_).backward_price(run.layer, BackwardHalf::both).memory_traffic;
  const bool wanted = now_.wants_input_gradient(run.layer);
  KernelCall call;
  call.layer = static_cast<int32_t>(run.layer);
  const auto scalars = [&](BatchNormPart part) {
    return std::array{static_cast<double>(now_.samples), static_cast<double>(part)};
  };
  const Slice sums = rank.allocate(Purpose::communication, sizes.dtype, sizes.sums, device());
  const Slice gradient = now_.gradient;
  std::vector<Slice> writes{sums};
  for (const Slice& each : gradients) {
    writes.push_back(each.buffer != no_buffer ? each : Slice{sums.buffer, each.dtype, 0, 0});
  }
  // Two of the five passes are for the sums.
  Ticket done = compute_part_of_norm(rank, plan(), call,
                                     {Kernel::layer_backward,
                                      BatchNormPart::own,
                                      wanted ? traffic / 5 * 2 : traffic,
                                      {gradient, run.input, run.rare().statistics},
                                      std::move(writes)},
                                     scalars(BatchNormPart::own), here);
  if (wanted) {
    const SiteId site = site_id(batch_norm_sites::reduce_sums);
    const Ticket ready = rank.event({compute(), {}, site});
    const Ticket reduced =
        rank.all_reduce(world_group, sums, Reduction::sum, {communication_stream, {ready}, site});
    rank.event({compute(), {reduced}, site});
    std::vector<Slice> reads{gradient, run.input, run.rare().statistics, sums};
    if (!parameters_of(run.layer).empty()) {
      reads.push_back(value_of(parameters_of(run.layer).front()));
    }
    if (plan().numerics) {
      now_.gradient = transient(rank, run.input.elements, run.input.dtype);
    }
    done = compute_part_of_norm(rank, plan(), call,
                                {Kernel::layer_backward,
                                 BatchNormPart::together,
                                 traffic - traffic / 5 * 2,
                                 std::move(reads),
                                 {now_.gradient}},
                                scalars(BatchNormPart::together), here);
  }
  rank.release(sums);
  return done;
}

}  // namespace lockstep
