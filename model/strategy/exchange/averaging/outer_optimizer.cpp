#include "model/strategy/exchange/averaging/outer_optimizer.hpp"

#include <fmt/core.h>

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/exchange/hooks/hook_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

Program OuterOptimizer::begin(Rank& rank) {
  const std::vector<Slice> values = parameters_of(0, false);
  if (values.empty()) {
    co_return;
  }
  const SiteId site = site_id(hook_sites::outer_step);
  if (outer_.buffer == no_buffer) {
    const DType dtype = values.front().dtype;
    outer_ = rank.allocate(Purpose::optimizer_state, dtype, total_elements(values));
    if (options_.momentum != 0) {
      momentum_ = rank.allocate(Purpose::optimizer_state, dtype, outer_.elements);
      elementwise(rank, Kernel::fill, {}, {momentum_}, 0, {replica().compute(), {}, site});
    }
  }
  copy_each(rank, values, parts_of(outer_, values), {replica().compute(), {}, site});
}

// torch/optim/sgd.py. Of zeros the first buffer is the first gradient, as torch's is.
void OuterOptimizer::step(Rank& rank, const Slice& gradient, Ticket after) {
  const ComputeOptions place = {replica().compute(), {after}, site_id(hook_sites::outer_step)};
  const auto descend = [&](const Slice& direction, double factor) {
    elementwise(rank, Kernel::add_scaled, {direction}, {outer_}, -options_.learning_rate * factor,
                place);
  };
  if (options_.momentum == 0) {
    descend(gradient, 1);
    return;
  }
  elementwise(rank, Kernel::scale, {}, {momentum_}, options_.momentum, place);
  elementwise(rank, Kernel::add, {gradient}, {momentum_}, 0, place);
  if (options_.nesterov) {
    descend(gradient, 1);
    descend(momentum_, options_.momentum);
  } else {
    descend(momentum_, 1);
  }
}

OuterOptimizer::Turn OuterOptimizer::turn_of(int64_t step) const {
  const int64_t number = step + 1;
  if (number <= warmup_steps_) {
    return number == warmup_steps_ ? Turn::begin : Turn::nothing;
  }
  return (number - warmup_steps_) % period_ == 0 ? Turn::outer_step : Turn::nothing;
}

int64_t OuterOptimizer::kind_of_step(int64_t ahead) const {
  return static_cast<int64_t>(turn_of(steps_ + ahead));
}

int64_t OuterOptimizer::place(int64_t ahead) const {
  const int64_t step = steps_ + ahead - warmup_steps_;
  return step < 0 ? step : step % period_;
}

void OuterOptimizer::leave_out(int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    outer_steps_ += turn_of(steps_++) == Turn::outer_step ? 1 : 0;
  }
}

Task<Bytes> OuterOptimizer::average(Rank& rank, size_t optimizer) {
  const Turn turn = turn_of(steps_++);
  const std::vector<Slice> values = parameters_of(optimizer, false);
  const SiteId site = site_id(hook_sites::outer_step);
  const ComputeOptions place = {replica().compute(), {}, site};
  if (turn == Turn::begin) {
    copy_each(rank, values, parts_of(outer_, values), place);
  }
  if (turn != Turn::outer_step) {
    co_return Bytes{};
  }
  ++outer_steps_;
  const Slice gradient =
      rank.allocate(Purpose::communication, outer_.dtype, total_elements(values));
  copy_each(rank, {outer_}, {gradient}, place);
  elementwise(rank, Kernel::add_scaled, values, parts_of(gradient, values), -1, place);
  const Ticket divided =
      elementwise(rank, Kernel::scale, {}, {gradient}, 1.0 / rank.world_size(), place);
  co_await rank.settle(divided);
  const Ticket reduced =
      rank.all_reduce(world_group, gradient, Reduction::sum,
                      {communication_stream, {divided}, site_id(hook_sites::reduce_outer)});
  step(rank, gradient, reduced);
  copy_each(rank, parts_of(outer_, values), values, place);
  rank.release(gradient);
  co_return gradient.bytes();
}

KnownDifference OuterOptimizer::difference() const {
  if (outer_steps_ > 0) {
    return {fmt::format("between outer steps, every {} steps, replicas differ", period_), "",
            DifferenceKind::of_replicas_for_now};
  }
  return {fmt::format("the outer optimizer never made a step: behind {} steps of warm-up it makes "
                      "one every {}, and the run has {}",
                      warmup_steps_, period_, steps_),
          "make model_averaging_period shorter, or the run longer", DifferenceKind::of_replicas};
}

}  // namespace lockstep
