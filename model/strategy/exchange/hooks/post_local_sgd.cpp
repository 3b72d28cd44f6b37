#include "model/strategy/exchange/hooks/post_local_sgd.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/exchange/hooks/hook_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

using namespace hook_sites;

// new_subgroups: a new_group of each node, of all ranks, one after the other.
Program PostLocalSgdHook::begin(Rank& rank) {
  if (is_global() || !options_.reduces_gradients_locally || subgroup_) {
    co_return;
  }
  const int32_t ranks = rank.place().local_world_size;
  for (int32_t first = 0; first < rank.world_size(); first += ranks) {
    std::vector<int64_t> members;
    for (int32_t member = first; member < std::min(first + ranks, rank.world_size()); ++member) {
      members.push_back(member);
    }
    const Rank::NewGroup made =
        rank.new_group(world_group, members, {communication_stream, {}, site_id(make_subgroups)});
    co_await rank.settle(made.ready);
    if (first <= rank.id() && rank.id() < first + ranks) {
      subgroup_ = made.group;
    }
  }
}

Ticket PostLocalSgdHook::start(Rank& rank, const FullBucket& bucket) {
  const bool global = is_global();
  iteration_ += global && bucket.is_last ? 1 : 0;
  if (!global && !options_.reduces_gradients_locally) {
    return bucket.filled;
  }
  const int32_t ranks = global ? rank.world_size() : rank.place().local_world_size;
  const Ticket divided = elementwise(rank, Kernel::scale, {}, {bucket.flat}, 1.0 / ranks,
                                     {bucket.filled}, site_id(prepare));
  return all_reduce(rank, global ? world_group : subgroup_.value_or(world_group), bucket.flat,
                    divided, site_id(reduce_gradients));
}

std::vector<Slice> PeriodicModelAverager::updated(size_t optimizer) const {
  std::vector<Slice> values;
  for (const Replica::Parameter& parameter : replica_->parameters()) {
    if (parameter.trainable && parameter.tensor.gradient.buffer != no_buffer &&
        replica_->plan().optimizers[optimizer].holds(parameter.place.layer)) {
      values.push_back(parameter.tensor.value);
    }
  }
  return values;
}

KnownDifference PeriodicModelAverager::difference() const {
  if (averagings_ > 1 || steps_ == last_) {
    return {
        fmt::format("between the averagings of models, every {} steps, replicas differ", period_),
        "", DifferenceKind::of_replicas_for_now};
  }
  const int64_t alone = steps_ - std::max(last_, warmup_steps_);
  return {fmt::format("the models were averaged {} in this run: after the first averaging, behind "
                      "{} steps of warm-up, a period is {} steps, and {} came",
                      averagings_ == 0 ? "never" : "once", warmup_steps_, period_, alone),
          "make model_averaging_period shorter, or the run longer", DifferenceKind::of_replicas};
}

Task<Bytes> PeriodicModelAverager::average(Rank& rank, size_t optimizer) {
  const int64_t step = steps_++;
  if (step < warmup_steps_ || (step - warmup_steps_) % period_ != 0) {
    co_return Bytes{};
  }
  last_ = steps_;
  ++averagings_;
  const SiteId site = site_id(average_model);
  const std::vector<Slice> values = updated(optimizer);
  if (values.empty()) {
    throw ProgramException(site,
                           "torch.cat(): expected a non-empty list of Tensors: no parameter has a "
                           "gradient, so that there is nothing to average");
  }
  const Slice flat =
      rank.allocate(Purpose::communication, values.front().dtype, total_elements(values));
  copy_each(rank, values, parts_of(flat, values), {replica_->compute(), {}, site});
  // torch synchronises the device, so that this call meets none of another group.
  const Ticket divided =
      elementwise(rank, Kernel::scale, {}, {flat}, 1.0 / rank.world_size(), {}, site);
  co_await rank.settle(divided);
  const Ticket reduced =
      rank.all_reduce(world_group, flat, Reduction::sum, {communication_stream, {divided}, site});
  copy_each(rank, parts_of(flat, values), values, {replica_->compute(), {reduced}, site});
  rank.release(flat);
  co_return flat.bytes();
}

}  // namespace lockstep
