#include "model/strategy/sharded/fairscale/fully_sharded.hpp"

#include "model/strategy/sharded/fairscale/fully_sharded_sites.hpp"

namespace lockstep {

namespace {

// FairScale casts parameters and inputs itself; Lightning adds no autocast.
TrainingPlan computing_in(TrainingPlan plan, const FairScaleShardingOptions& options) {
  plan.parameter_dtype = options.compute_dtype.value_or(plan.parameter_dtype);
  plan.activation_dtype = plan.parameter_dtype;
  return plan;
}

}  // namespace

FairScaleFullySharded::FairScaleFullySharded(const TrainingPlan& plan,
                                             const FairScaleShardingOptions& options)
    : UnitSharding(plan, computing_in(plan, options),
                   {.gather_unit = fully_sharded_sites::gather_unit,
                    .wait_for_unit = fully_sharded_sites::wait_for_unit,
                    .share_norm = fully_sharded_sites::share_norm,
                    .update = fully_sharded_sites::update,
                    .zero_gradients = fully_sharded_sites::zero_gradients,
                    .gather_state = fully_sharded_sites::gather_state,
                    .make_groups = fully_sharded_sites::make_groups,
                    .exchange_plans = fully_sharded_sites::gather_state}),
      options_(options) {
  clips_by_whole_norm_ = options.clips_by_whole_norm;
}

// Construction

Program FairScaleFullySharded::setup(Rank& rank, Stage stage) {
  if (!bucket_) {
    replica_.allocate_without_parameters(rank);
    shard_ranks_ = rank.world_size();
    co_await make_own_groups(rank);
    offload_ = options_.cpu_offload ? Offload::replacing_gradients : Offload::none;
    const DType stored = plan().parameter_dtype;
    const DType gathered = computing_plan().parameter_dtype;
    make_units(rank, options_.wrap,
               {stored, gathered, options_.fp32_reduce_scatter ? stored : gathered}, rank.id(),
               [this](const std::vector<size_t>& parameters) {
                 std::vector<int64_t> sizes;
                 for (const size_t index : parameters) {
                   sizes.push_back(elements_of(index));
                 }
                 return ShardLayout::flat(sizes, shard_ranks_);
               });
    make_bucket(rank);
  }
  if (stage == Stage::fit) {
    for (Unit& unit : units_) {
      unit.state.forget_optimizer(rank);
    }
  }
}

// Lightning makes a group of all ranks for the wrapper, which makes another one for its reductions.
Program FairScaleFullySharded::make_own_groups(Rank& rank) {
  std::vector<int64_t> members;
  for (int32_t member = 0; member < rank.world_size(); ++member) {
    members.push_back(member);
  }
  for (GroupId* group : {&shard_group_, &reduce_group_}) {
    const Rank::NewGroup made =
        rank.new_group(world_group, members,
                       {communication_stream, {}, site_id(fully_sharded_sites::make_groups)});
    co_await rank.settle(made.ready);
    *group = made.group;
  }
}

void FairScaleFullySharded::make_bucket(Rank& rank) {
  ReductionBucket::Options bucket;
  bucket.group = reduce_group_;
  bucket.ranks = rank.world_size();
  bucket.carries_values = plan().numerics;
  for (const Unit& unit : units_) {
    bucket.dtype = unit.state.reduced_dtype();
    bucket.most_elements += unit.state.layout().shard_elements();
  }
  if (options_.bucket_cap_mb > 0) {
    constexpr double mebibyte = 1024.0 * 1024.0;
    bucket.capacity = Bytes(static_cast<int64_t>(options_.bucket_cap_mb * mebibyte));
  }
  bucket_.emplace(bucket);
}

// Forward

Program FairScaleFullySharded::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  co_await rank.settle(loss_ready_);  // the host runs at most one step ahead of the device
  for (Unit& unit : units_) {
    unit.is_entered = false;
  }
  weights_ready_ = rank.event({compute_stream, {}, site_id(fully_sharded_sites::gather_unit)});
  replica_.begin_forward(rank, batch, options);
  const size_t layers = replica_.network().layers.size();
  const std::vector<size_t> running = running_layers(options);
  size_t next = 0;
  for (size_t layer = 0; layer < layers; ++layer) {
    const bool runs = next < running.size() && running[next] == layer;
    if (runs) {
      enter(rank, layer);  // 1. gathered before its first layer,
      refuse_sharded_parameter(layer);
    }
    replica_.forward_layer(rank, layer, options);
    if (runs) {
      ++next;
      leave(rank, layer, next < running.size() ? running[next] : layers);  // 2. then freed
    }
  }
  loss_ready_ = replica_.end_forward(rank, options);
}

void FairScaleFullySharded::enter(Rank& rank, size_t layer) {
  for (Unit& unit : units_) {
    if (unit.module.contains(layer) && !std::exchange(unit.is_entered, true)) {
      unit.gathered_at = layer;
      unshard(rank, unit);
    }
  }
}

void FairScaleFullySharded::leave(Rank& rank, size_t layer, size_t next_layer) {
  for (size_t index = units_.size(); index-- > 0;) {
    Unit& unit = units_[index];
    if (unit.module.contains(layer) && !unit.module.contains(next_layer)) {
      unit.is_entered = false;
      if (reshards(unit)) {
        reshard(rank, unit);
      }
    }
  }
}

void FairScaleFullySharded::unshard(Rank& rank, Unit& unit) {
  if (!unit.state.is_gathered()) {
    unit.state.gather(rank, shard_exchange(fully_sharded_sites::gather_unit), weights_ready_);
  }
  unit.state.await_gathered(rank, site_id(fully_sharded_sites::wait_for_unit));
}

void FairScaleFullySharded::reshard(Rank& rank, Unit& unit) {
  if (unit.state.is_gathered() && !unit.state.is_whole()) {
    unit.state.free(rank);
  }
}

// Backward

Program FairScaleFullySharded::backward(Rank& rank, const StepOptions& options) {
  const int64_t last = replica_.last_forward();
  const std::vector<BackwardPass> passes = replica_.take_passes(options);
  find_ends_by_age(passes);
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    replica_.turn_to(passes[pass].forward);
    replica_.backward_of_loss(rank, passes[pass].applied_to(options));
    for (const size_t layer : replica_.layers_last_to_first()) {
      begin_backward_of(rank, layer);  // 3. gathered again
      const Ticket done = replica_.backward(rank, layer);
      for (size_t index = units_.size(); index-- > 0;) {  // inner ones before those around them
        Unit& unit = units_[index];
        const bool ends = pass + 1 == passes.size() && unit.ends_at == layer;
        if (ends && !unit.is_root && !unit.has_reduced) {
          end_backward(rank, unit, done, options.synchronise);  // 4. freed, its gradients collected
        }
      }
    }
    replica_.forget_forward(rank);
  }
  replica_.return_to(last);
  for (Unit& unit : units_) {
    if (unit.is_root && unit.state.has_whole_gradients()) {
      end_backward(rank, unit, {}, options.synchronise);
    }
    unit.in_backward = false;
    if (!unit.is_root && (options.synchronise || options_.reshard_after_forward)) {
      reshard(rank, unit);
    }
  }
  bucket_->flush(rank);  // 5. reduced in one call
  const GradientDivision division = GradientDivision::over(rank.world_size());
  bucket_->settle(rank, 1 / division.after);
  for (Unit& unit : units_) {  // what was reduced by itself
    unit.state.settle_gradients(rank, division, site_id(fully_sharded_sites::take_gradients));
  }
  co_return;
}

void FairScaleFullySharded::begin_backward_of(Rank& rank, size_t layer) {
  for (Unit& unit : units_) {
    if (backward_reads(unit, layer)) {
      unit.in_backward = true;
      unshard(rank, unit);
    }
  }
}

void FairScaleFullySharded::end_backward(Rank& rank, Unit& unit, Ticket done, bool synchronise) {
  unit.has_reduced = true;
  if (synchronise || reshards(unit)) {
    reshard(rank, unit);
  }
  if (!synchronise) {
    return;  // no_sync: the whole gradients stay on this rank
  }
  const GradientDivision division = GradientDivision::over(rank.world_size());
  if (unit.state.is_sharded() && bucket_->takes(unit.state)) {
    bucket_->add(rank, unit.state, 1 / division.before, done);
  } else {
    unit.state.reduce(rank, {reduce_group_, site_id(fully_sharded_sites::reduce_unit)}, nullptr,
                      division, done);
  }
}

Program FairScaleFullySharded::optimizer_step(Rank& rank, const UpdateOptions& options) {
  if (options_.refuses_norm && options.clipping.algorithm == GradientClipping::Algorithm::norm) {
    throw ProgramException(site_id(fully_sharded_sites::update),
                           "MisconfigurationException: `gradient_clip_algorithm='norm'` is "
                           "currently not supported for `FullyShardedNativeMixedPrecisionPlugin`");
  }
  co_await UnitSharding::optimizer_step(rank, options);
}

// summon_full_params: every unit is gathered as it is stored, also what was gathered before, and
// nothing is afterwards. The state_dicts of inner units lie within that of the outermost one.
Program FairScaleFullySharded::gather_weights(Rank& rank) {
  const ShardedUnit::Exchange exchange = shard_exchange(fully_sharded_sites::gather_state);
  const Ticket updated = rank.event({compute_stream, {}, exchange.site});
  std::optional<Slice> of_root;
  for (Unit& unit : units_) {
    if (!unit.state.is_sharded()) {
      continue;
    }
    reshard(rank, unit);
    const ShardedUnit::Copy copy = unit.state.gather_copy(rank, exchange, updated);
    co_await rank.settle(copy.done);
    if (unit.is_root) {
      of_root = copy.whole;
    } else {
      rank.release(copy.whole);
    }
  }
  if (of_root) {
    rank.release(*of_root);
  }
}

// Rank 0 writes the whole parameters, and of the optimizer's state its own part.
Task<Bytes> FairScaleFullySharded::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                   SiteId site) {
  co_await gather_weights(rank);
  const Bytes written = rank.id() == 0 ? own_checkpoint_bytes(request) : Bytes{};
  co_await write_file(rank, written, request, 1, site);
  co_return written;
}

}  // namespace lockstep
