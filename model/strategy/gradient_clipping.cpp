#include "model/strategy/gradient_clipping.hpp"

#include "model/strategy/replica_sites.hpp"

namespace lockstep {

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
  const Slice squared_norm = rank.allocate(Purpose::workspace, dtype, 1, device);
  KernelCall measure;
  measure.kernel = Kernel::squared_norm;
  measure.reads = gradients;
  measure.writes = {&squared_norm, 1};
  measure.memory_traffic = size;
  const Ticket measured = rank.compute(measure, options);
  if (shared != nullptr) {
    const Ticket summed = rank.all_reduce(shared->group, squared_norm, Reduction::sum,
                                          {communication_stream, {measured}, shared->site});
    rank.event({options.on, {summed}, options.site});
  }
  call.kernel = Kernel::clip_by_norm;
  call.reads = {&squared_norm, 1};
  rank.compute(call, options);
  rank.release(squared_norm);
}

}  // namespace lockstep
