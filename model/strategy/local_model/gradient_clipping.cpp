#include "model/strategy/local_model/gradient_clipping.hpp"

#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

namespace {

// What lies in host memory travels through the device that communicates.
Ticket sum_over(Rank& rank, const SharedNorm& shared, const Slice& squared_norm, DeviceId device,
                Ticket measured) {
  if (device != host_device) {
    const Ticket summed = rank.all_reduce(shared.group, squared_norm, Reduction::sum,
                                          {communication_stream, {measured}, shared.site});
    return shared.across ? rank.all_reduce(*shared.across, squared_norm, Reduction::sum,
                                           {communication_stream, {summed}, shared.site})
                         : summed;
  }
  const Slice travels =
      rank.allocate(Purpose::workspace, squared_norm.dtype, squared_norm.elements);
  const Ticket there = rank.copy(squared_norm, travels, {copy_stream, {measured}, shared.site});
  const Ticket summed = rank.all_reduce(shared.group, travels, Reduction::sum,
                                        {communication_stream, {there}, shared.site});
  const Ticket back = rank.copy(travels, squared_norm, {copy_stream, {summed}, shared.site});
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
  const Slice norms =
      rank.allocate(Purpose::workspace, dtype, shared == nullptr ? 1 : shared->elements, device);
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
