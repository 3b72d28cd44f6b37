#include "model/strategy/pipeline/clipping_over_devices.hpp"

#include "model/strategy/data_parallel/device_copy.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

namespace {

// Each lies on its device, and later work there sees it.
void carry(Rank& rank, const Slice& from, DeviceId sender, const Slice& to, DeviceId receiver) {
  const SiteId site = site_id(replica_sites::clip_gradients);
  const Ticket came =
      copy_between_devices(rank, from, to, {stream(queue::compute, sender), {}, site});
  rank.event({stream(queue::compute, receiver), {came}, site});
}

}  // namespace

void clip_gradients_over_devices(Rank& rank, const GradientClipping& clipping,
                                 const std::vector<GradientsOnDevice>& all) {
  if (clipping.algorithm != GradientClipping::Algorithm::norm) {
    for (const GradientsOnDevice& each : all) {
      clip_gradients(rank, clipping, each.gradients, each.device);
    }
    return;
  }
  std::vector<const GradientsOnDevice*> present;
  for (const GradientsOnDevice& each : all) {
    if (!each.gradients.empty()) {
      present.push_back(&each);
    }
  }
  if (present.empty()) {
    return;
  }
  const DeviceId first = present.front()->device;
  const DType dtype = norm_dtype(present.front()->gradients);
  const Slice squares = rank.allocate(Purpose::workspace, dtype, std::ssize(present), first);
  const Slice whole = squares.part(0, 1);
  std::vector<Slice> own = {whole};
  for (size_t at = 0; at < present.size(); ++at) {
    const auto& [device, gradients] = *present[at];
    if (at > 0) {
      own.push_back(rank.allocate(Purpose::workspace, dtype, 1, device));
    }
    measure_norm(rank, gradients, own[at], device);
  }
  const ComputeOptions adding{
      stream(queue::compute, first), {}, site_id(replica_sites::clip_gradients)};
  for (size_t at = 1; at < present.size(); ++at) {
    const Slice square = squares.part(static_cast<int64_t>(at), 1);
    carry(rank, own[at], present[at]->device, square, first);
    elementwise(rank, Kernel::add, {square}, {whole}, 0, adding);
  }
  for (size_t at = 0; at < present.size(); ++at) {
    const auto& [device, gradients] = *present[at];
    if (at > 0) {
      carry(rank, whole, first, own[at], device);
    }
    clip_to_norm(rank, clipping, gradients, own[at], device);
  }
  for (const Slice& square : own) {
    rank.release(square.buffer == whole.buffer ? squares : square);
  }
}

}  // namespace lockstep
