#include "model/strategy/gradient_clipping.hpp"

#include "model/strategy/replica_sites.hpp"

namespace lockstep {

void clip_gradients(Rank& rank, const GradientClipping& clipping,
                    const std::vector<Slice>& gradients, DeviceId device) {
  if (clipping.algorithm == GradientClipping::Algorithm::none || gradients.empty()) {
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
  const DType dtype = gradients.front().dtype == DType::fp64 ? DType::fp64 : DType::fp32;
  const Slice squared_norm = rank.allocate(Purpose::workspace, dtype, 1, device);
  KernelCall measure;
  measure.kernel = Kernel::squared_norm;
  measure.reads = gradients;
  measure.writes = {&squared_norm, 1};
  measure.memory_traffic = size;
  rank.compute(measure, options);
  call.kernel = Kernel::clip_by_norm;
  call.reads = {&squared_norm, 1};
  rank.compute(call, options);
  rank.release(squared_norm);
}

}  // namespace lockstep
