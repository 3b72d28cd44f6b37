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

}  // namespace

void clip_gradients(Rank& rank, const GradientClipping& clipping,
                    const std::vector<Slice>& gradients, DeviceId device,
                    const SharedNorm* shared) {
  if (clipping.algorithm == GradientClipping::Algorithm::none ||
      (gradients.empty() && shared == nullptr)) {
    return;
  }
  const ComputeOptions options{
      stream(queue::compute, device), {}, site_id(replica_sites::clip_gradients)};
  Bytes size{};
  for (const Slice& gradient : gradients) {
    size += gradient.bytes();
  }
  KernelCall call;
  call.scalars = {&clipping.limit, 1};
  call.memory_traffic = size * 2;
  call.writes = gradients;
  if (clipping.algorithm == GradientClipping::Algorithm::value) {
    call.kernel = Kernel::clip_by_value;
    rank.compute(call, options);
    return;
  }
  // A norm of half-precision gradients is kept in single precision.
  const bool is_double = !gradients.empty() && gradients.front().dtype == DType::fp64;
  const DType dtype = is_double ? DType::fp64 : DType::fp32;
  int64_t elements = 1;
  for (size_t i = 0; shared != nullptr && i < shared->sums.size(); ++i) {
    elements = std::max(elements, shared->sums[i].elements);
  }
  const Slice norms = rank.allocate(Purpose::workspace, dtype, elements, device);
  const Slice squared_norm = norms.part(0, 1);
  const std::vector<Slice>& counted =
      shared != nullptr && shared->counted != nullptr ? *shared->counted : gradients;
  KernelCall measure;
  measure.kernel = Kernel::squared_norm;
  measure.reads = counted;
  measure.writes = {&squared_norm, 1};
  measure.memory_traffic = size;
  const Ticket measured = rank.compute(measure, options);
  if (shared != nullptr) {
    const Ticket summed = sum_over(rank, *shared, norms, device, measured);
    rank.event({options.on, {summed}, options.site});
  }
  call.kernel = Kernel::clip_by_norm;
  call.reads = {&squared_norm, 1};
  rank.compute(call, options);
  rank.release(norms);
}

}  // namespace lockstep
