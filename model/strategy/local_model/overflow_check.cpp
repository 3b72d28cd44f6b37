#include "model/strategy/local_model/overflow_check.hpp"

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

// Small kernels in torch make the flag and the reciprocal of the scale; here it is one.
OverflowCheck::OverflowCheck(Rank& rank, DeviceId device) : rank_(&rank), device_(device) {
  flag_ = rank.allocate(Purpose::workspace, DType::fp32, 1, device);
  elementwise(rank, Kernel::fill, {}, {flag_}, 0,
              {stream(queue::compute, device), {}, site_id(replica_sites::unscale_gradients)});
}

// torch._amp_foreach_non_finite_check_and_unscale_: the reciprocal is rounded to fp32.
void OverflowCheck::unscale(const std::vector<Slice>& gradients, double scale) {
  if (gradients.empty()) {
    return;
  }
  const double factor = static_cast<float>(1 / scale);
  std::vector<Slice> writes{flag_};
  writes.insert(writes.end(), gradients.begin(), gradients.end());
  KernelCall call;
  call.kernel = Kernel::unscale;
  call.writes = writes;
  call.scalars = {&factor, 1};
  call.memory_traffic = total_bytes(gradients) * 2;
  rank_->compute(call,
                 {stream(queue::compute, device_), {}, site_id(replica_sites::unscale_gradients)});
}

// A flag in host memory travels through the device that communicates.
void OverflowCheck::share(GroupId ranks, Reduction reduction) {
  const SiteId site = site_id(replica_sites::share_overflow);
  const StreamId computes = stream(queue::compute, device_);
  Ticket ready = rank_->event({computes, {}, site});
  Slice travels = flag_;
  if (device_ == host_device) {
    travels = rank_->allocate(Purpose::workspace, DType::fp32, 1);
    ready = rank_->copy(flag_, travels, {copy_stream, {ready}, site});
  }
  Ticket shared =
      rank_->all_reduce(ranks, travels, reduction, {communication_stream, {ready}, site});
  if (device_ == host_device) {
    shared = rank_->copy(travels, flag_, {copy_stream, {shared}, site});
  }
  rank_->event({computes, {shared}, site});
  if (device_ == host_device) {
    rank_->event({compute_stream, {shared}, site});
    rank_->release(travels);
  }
}

Task<std::optional<bool>> OverflowCheck::found() {
  const Ticket checked =
      rank_->event({stream(queue::compute, device_), {}, site_id(replica_sites::find_overflow)});
  co_await rank_->settle(checked);
  const Values flag = rank_->read(flag_);
  rank_->release(flag_);
  co_return flag.empty() ? std::nullopt : std::optional(flag.number(0) != 0);
}

}  // namespace lockstep
