#include "model/strategy/sharded/fsdp/fsdp2.hpp"

#include <algorithm>

#include "model/strategy/sharded/fsdp/fsdp2_sites.hpp"

namespace lockstep {

namespace {

TrainingPlan computing_in(TrainingPlan plan, const FullyShard2Options& options) {
  if (options.param_dtype) {
    // Without autocast layers compute in the type of their parameters and inputs.
    plan.activation_dtype = plan.types().is_mixed() ? plan.activation_dtype : *options.param_dtype;
    plan.parameter_dtype = *options.param_dtype;
  }
  return plan;
}

}  // namespace

FullyShard2::FullyShard2(const TrainingPlan& plan, const FullyShard2Options& options)
    : UnitSharding(plan, computing_in(plan, options),
                   {.gather_unit = fsdp2_sites::gather_unit,
                    .wait_for_unit = fsdp2_sites::wait_for_unit,
                    .share_norm = fsdp2_sites::share_norm,
                    .update = fsdp2_sites::update,
                    .zero_gradients = fsdp2_sites::zero_gradients,
                    .gather_state = fsdp2_sites::gather_state,
                    .make_groups = fsdp2_sites::make_groups,
                    .exchange_plans = fsdp2_sites::exchange_plans}),
      options_(options) {
  norm_by_parameter_ = true;
}

// Construction

Program FullyShard2::setup(Rank& rank, Stage stage) {
  if (!std::exchange(is_set_up_, true)) {
    replica_.allocate_without_parameters(rank);
    shard_ranks_ = options_.shard_ranks > 0 ? options_.shard_ranks : rank.world_size();
    if (shard_ranks_ < rank.world_size()) {
      const Groups groups = co_await make_groups(rank, shard_ranks_);
      shard_group_ = groups.shard;
      replica_group_ = groups.replica;
    }
    if (options_.reshard_to > 0) {
      const Groups groups = co_await make_groups(rank, options_.reshard_to);
      pair_group_ = groups.shard;
    }
    offload_ = options_.offload ? Offload::adding_gradients : Offload::none;
    const DType gathered = computing_plan().parameter_dtype;
    make_units(rank, options_.wrap,
               {plan().parameter_dtype, gathered, options_.reduce_dtype.value_or(gathered)},
               rank.id() % shard_ranks_,
               [this](const std::vector<size_t>& parameters) { return layout_of(parameters); });
    for (Unit& unit : units_) {
      unit.state.reduce_only_given();
    }
  }
  if (stage == Stage::fit) {
    for (Unit& unit : units_) {
      unit.state.forget_optimizer(rank);
    }
  }
}

ShardLayout FullyShard2::layout_of(const std::vector<size_t>& parameters) const {
  std::vector<ShardLayout::Rows> rows;
  for (const size_t index : parameters) {
    const Shape& shape = replica_.network().parameter(replica_.parameters()[index].place).shape;
    const int64_t count = shape.empty() ? 1 : shape.front();
    rows.push_back({count, count == 0 ? 0 : elements_of(index) / count});
  }
  return ShardLayout::by_rows(rows, shard_ranks_);
}

bool FullyShard2::reshards(const Unit& unit) const {
  return options_.reshard_after_forward.value_or(options_.reshard_to > 0 || !unit.is_root);
}

// fp32 and bf16 are averaged by the collective; fp16 is divided before and after the sum.
GradientDivision FullyShard2::division(const Rank& rank) const {
  const DType reduced = options_.reduce_dtype.value_or(computing_plan().parameter_dtype);
  if (reduced == DType::fp16) {
    return GradientDivision::over(rank.world_size());
  }
  return {1, 1, true};
}

// Forward

Program FullyShard2::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  co_await rank.settle(loss_ready_);  // the host runs at most one step ahead of the device
  forward_order_.clear();
  weights_ready_ = rank.event({compute_stream, {}, site_id(fsdp2_sites::gather_unit)});
  replica_.begin_forward(rank, batch, options);
  const size_t layers = replica_.network().layers.size();
  const std::vector<size_t> running = running_layers(options);
  size_t next = 0;
  for (size_t layer = 0; layer < layers; ++layer) {
    const bool runs = next < running.size() && running[next] == layer;
    if (runs) {
      enter(rank, layer);
      refuse_sharded_parameter(layer);
    }
    replica_.forward_layer(rank, layer, options);
    if (runs) {
      ++next;
      leave(rank, layer, next < running.size() ? running[next] : layers);
    }
  }
  loss_ready_ = replica_.end_forward(rank, options);
}

// 1. Gathered before its first layer, outer modules before those in them.
void FullyShard2::enter(Rank& rank, size_t layer) {
  for (Unit& unit : units_) {
    if (unit.module.contains(layer)) {
      unshard(rank, unit);
      unit.state.await_gathered(rank, site_id(fsdp2_sites::wait_for_unit));
    }
  }
}

void FullyShard2::unshard(Rank& rank, Unit& unit) {
  if (!unit.state.is_gathered()) {
    const bool in_pairs = unit.state.keeps_larger_part();
    unit.state.gather(rank,
                      {in_pairs ? pair_group_ : shard_group_, site_id(fsdp2_sites::gather_unit)},
                      weights_ready_);
  }
}

void FullyShard2::leave(Rank& rank, size_t layer, size_t next_layer) {
  for (size_t index = units_.size(); index-- > 0;) {
    Unit& unit = units_[index];
    if (unit.module.contains(layer) && !unit.module.contains(next_layer)) {
      forward_order_.push_back(index);
      if (reshards(unit)) {
        reshard_after_forward(rank, unit);
      }
    }
  }
}

void FullyShard2::reshard_after_forward(Rank& rank, Unit& unit) {
  if (unit.state.is_whole()) {
    return;
  }
  if (options_.reshard_to > 0) {
    unit.state.free_but_part(rank, options_.reshard_to, rank.id() % options_.reshard_to,
                             site_id(fsdp2_sites::free_unit));
  } else {
    unit.state.free(rank);
  }
}

// Backward

Program FullyShard2::backward(Rank& rank, const StepOptions& options) {
  const int64_t last = replica_.last_forward();
  const std::vector<BackwardPass> passes = replica_.take_passes(options);
  find_ends(passes);
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    replica_.turn_to(passes[pass].forward);
    replica_.backward_of_loss(rank, passes[pass].applied_to(options));
    for (const size_t layer : replica_.layers_last_to_first()) {
      begin_backward_of(rank, layer);
      const Ticket done = replica_.backward(rank, layer);
      for (Unit& unit : units_) {
        const bool ends = pass + 1 == passes.size() && unit.ends_at == layer;
        if (ends && replica_.passes_gradient_on(layer)) {
          end_backward(rank, unit, done, options.synchronise);
        }
      }
    }
    replica_.forget_forward(rank);
  }
  replica_.return_to(last);
  // Modules whose input needs no gradient have no hook of their own: they end with the backward.
  for (Unit& unit : units_) {
    if (!unit.has_reduced) {
      end_backward(rank, unit, {}, options.synchronise);
    }
  }
  for (Unit& unit : units_) {
    unit.state.settle_gradients(rank, division(rank), site_id(fsdp2_sites::take_gradients));
  }
  reducing_ = nullptr;
  co_return;
}

void FullyShard2::find_ends(const std::vector<BackwardPass>& passes) {
  const int64_t last = replica_.last_forward();
  for (Unit& unit : units_) {
    unit.ends_at.reset();
    unit.has_reduced = false;
    unit.in_backward = false;
  }
  replica_.turn_to(passes.back().forward);
  for (const size_t layer : replica_.layers_last_to_first()) {
    for (Unit& unit : units_) {
      if (unit.module.contains(layer)) {
        unit.ends_at = layer;
      }
    }
  }
  replica_.turn_to(last);
}

// 2. Gathered again, and behind it the module whose forward ended before this one's.
void FullyShard2::begin_backward_of(Rank& rank, size_t layer) {
  const CheckpointedSegment* segment = replica_.network().segment_of(layer);
  for (size_t index = 0; index < units_.size(); ++index) {
    Unit& unit = units_[index];
    const bool runs_again = segment != nullptr && unit.module.first <= segment->last &&
                            unit.module.last >= segment->first;
    if (unit.has_reduced || unit.in_backward || !(unit.module.contains(layer) || runs_again)) {
      continue;
    }
    unit.in_backward = true;
    unshard(rank, unit);
    unit.state.await_gathered(rank, site_id(fsdp2_sites::wait_for_unit));
    const auto found = std::find(forward_order_.begin(), forward_order_.end(), index);
    if (found != forward_order_.end() && found != forward_order_.begin()) {
      Unit& next = units_[*std::prev(found)];
      if (!next.in_backward && !next.has_reduced) {
        unshard(rank, next);
      }
    }
  }
}

// 3. Freed, and its gradients reduced; one buffer of such a reduction exists at a time.
void FullyShard2::end_backward(Rank& rank, Unit& unit, Ticket done, bool synchronise) {
  unit.has_reduced = true;
  unit.in_backward = false;
  if (unit.state.is_gathered() && !unit.state.is_whole()) {
    unit.state.free(rank);
  }
  if (!synchronise || !unit.state.has_whole_gradients()) {
    return;
  }
  if (reducing_ != nullptr) {
    reducing_->state.settle_gradients(rank, division(rank), site_id(fsdp2_sites::take_gradients));
  }
  reducing_ = &unit;
  const ShardedUnit::Exchange across{replica_group_.value_or(world_group),
                                     site_id(fsdp2_sites::reduce_replicas)};
  unit.state.reduce(rank, shard_exchange(fsdp2_sites::reduce_unit),
                    replica_group_ ? &across : nullptr, division(rank), done);
}

}  // namespace lockstep
