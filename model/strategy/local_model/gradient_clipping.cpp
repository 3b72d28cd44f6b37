#include "model/strategy/local_model/gradient_clipping.hpp"

#include <algorithm>

#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

namespace {

Ticket sum_on_device(Rank& rank, const SharedNorm& shared, const Slice& norms, Ticket ready) {
  for (const SharedNorm::Sum& sum : shared.sums) {
    ready = rank.all_reduce(sum.group, norms.part(0, sum.elements), Reduction::sum,
                            {communication_stream, {ready}, shared.site});
  }
  return ready;
}

// What lies in host memory travels through the device that communicates.
Ticket sum_over(Rank& rank, const SharedNorm& shared, const Slice& norms, DeviceId device,
                Ticket measured) {
  if (device != host_device) {
    return sum_on_device(rank, shared, norms, measured);
  }
  const Slice travels = rank.allocate(Purpose::workspace, norms.dtype, norms.elements);
  const Ticket there = rank.copy(norms, travels, {copy_stream, {measured}, shared.site});
  const Ticket summed = sum_on_device(rank, shared, travels, there);
  const Ticket back = rank.copy(travels, norms, {copy_stream, {summed}, shared.site});
  rank.event({compute_stream, {back}, shared.site});
  rank.release(travels);
  return back;
}

Bytes bytes_of(const std::vector<Slice>& gradients) {
  Bytes size{};
  for (const Slice& gradient : gradients) {
    size += gradient.bytes();
  }
  return size;
}

ComputeOptions on_compute_stream(DeviceId device) {
  return {stream(queue::compute, device), {}, site_id(replica_sites::clip_gradients)};
}

// Every gradient is read and written.
KernelCall clipping_call(const GradientClipping& clipping, const std::vector<Slice>& gradients) {
  KernelCall call;
  call.kernel = clipping.algorithm == GradientClipping::Algorithm::value ? Kernel::clip_by_value
                                                                         : Kernel::clip_by_norm;
  call.scalars = {&clipping.limit, 1};
  call.memory_traffic = bytes_of(gradients) * 2;
  call.writes = gradients;
  return call;
}

}  // namespace

DType norm_dtype(const std::vector<Slice>& gradients) {
  const bool is_double = !gradients.empty() && gradients.front().dtype == DType::fp64;
  return is_double ? DType::fp64 : DType::fp32;
}

Ticket measure_norm(Rank& rank, const std::vector<Slice>& gradients, const Slice& squared_norm,
                    DeviceId device) {
  KernelCall measure;
  measure.kernel = Kernel::squared_norm;
  measure.reads = gradients;
  measure.writes = {&squared_norm, 1};
  measure.memory_traffic = bytes_of(gradients);
  return rank.compute(measure, on_compute_stream(device));
}

void clip_to_norm(Rank& rank, const GradientClipping& clipping, const std::vector<Slice>& gradients,
                  const Slice& squared_norm, DeviceId device) {
  KernelCall call = clipping_call(clipping, gradients);
  call.reads = {&squared_norm, 1};
  rank.compute(call, on_compute_stream(device));
}

void clip_gradients(Rank& rank, const GradientClipping& clipping,
                    const std::vector<Slice>& gradients, DeviceId device,
                    const SharedNorm* shared) {
  if (clipping.algorithm == GradientClipping::Algorithm::none ||
      (gradients.empty() && shared == nullptr)) {
    return;
  }
  if (clipping.algorithm == GradientClipping::Algorithm::value) {
    rank.compute(clipping_call(clipping, gradients), on_compute_stream(device));
    return;
  }
  int64_t elements = 1;
  for (size_t i = 0; shared != nullptr && i < shared->sums.size(); ++i) {
    elements = std::max(elements, shared->sums[i].elements);
  }
  const Slice norms = rank.allocate(Purpose::workspace, norm_dtype(gradients), elements, device);
  const Slice squared_norm = norms.part(0, 1);
  const std::vector<Slice>& counted =
      shared != nullptr && shared->counted != nullptr ? *shared->counted : gradients;
  const Ticket measured = measure_norm(rank, counted, squared_norm, device);
  if (shared != nullptr) {
    const Ticket summed = sum_over(rank, *shared, norms, device, measured);
    const ComputeOptions options = on_compute_stream(device);
    rank.event({options.on, {summed}, options.site});
  }
  clip_to_norm(rank, clipping, gradients, squared_norm, device);
  rank.release(norms);
}

}  // namespace lockstep
