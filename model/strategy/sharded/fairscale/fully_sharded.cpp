#include "model/strategy/sharded/fairscale/fully_sharded.hpp"

#include <algorithm>

#include "model/strategy/sharded/fairscale/fully_sharded_sites.hpp"
#include "model/strategy/sharded/fsdp/post_backward.hpp"

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
  optimizes_flat_ = true;
  clips_by_whole_norm_ = options.clips_by_whole_norm;
  if (options.refuses_norm) {
    plugin_without_norm_ = "FullyShardedNativeMixedPrecisionPlugin";
  }
}

// Construction

Program FairScaleFullySharded::setup(Rank& rank, Stage stage) {
  if (!bucket_) {
    replica_.state().allocate_without_parameters(rank);
    shard_ranks_ = rank.world_size();
    co_await make_own_groups(rank);
    offload_ = options_.cpu_offload ? Offload::replacing_gradients : Offload::none;
    const DType stored = plan().parameter_dtype;
    const DType gathered = computing_plan().parameter_dtype;
    make_units(rank, options_.wrap,
               {stored, gathered, options_.fp32_reduce_scatter ? stored : gathered}, rank.id(),
               [this](const std::vector<size_t>& parameters) { return layout_of(parameters); });
    for (Unit& unit : units_) {
      unit.state.settle_on(post_backward_stream);
    }
    make_bucket(rank);
  }
  if (stage == Stage::fit) {
    for (Unit& unit : units_) {
      unit.state.forget_optimizer(rank);
    }
  }
}

ShardLayout FairScaleFullySharded::layout_of(const std::vector<size_t>& parameters) const {
  std::vector<int64_t> sizes;
  for (const size_t index : parameters) {
    sizes.push_back(elements_of(index));
  }
  return ShardLayout::flat(sizes, shard_ranks_);
}

std::vector<int64_t> FairScaleFullySharded::kinds_of_ranks(const RanksOfRun& run) {
  if (plan().numerics) {
    return {};
  }
  shard_ranks_ = run.all;
  ShardKinds kinds(run.all);
  divide_by_pieces(kinds, options_.wrap,
                   [this](const std::vector<size_t>& parameters) { return layout_of(parameters); });
  return kinds.kinds();
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
  bucket.division = GradientDivision::over(rank.world_size());
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

// Forward and backward

Program FairScaleFullySharded::unshard(Rank& rank, Unit& unit, size_t layer) {
  unit.gathered_at = layer;
  unit.state.gather(rank, shard_exchange(fully_sharded_sites::gather_unit), weights_ready_);
  co_return;
}

void FairScaleFullySharded::reshard_after_forward(Rank& rank, Unit& unit) {
  if (reshards(unit)) {
    reshard(rank, unit);
  }
}

// The backward of a segment that makes its graph again is a whole one: it has made all gradients of
// the segment, and with them the hooks of units around it run, before others have theirs.
Program FairScaleFullySharded::end_units_behind(Rank& rank, size_t layer, Ticket done,
                                                bool synchronise) {
  const CheckpointedSegment* const segment = replica_.network().segment_of(layer);
  if (segment != nullptr && segment->first == layer && makes_graph_again(*segment)) {
    for (size_t index = units_.size(); index-- > 0;) {
      Unit& unit = units_[index];
      const bool is_around = unit.module.first < segment->first || unit.module.last > segment->last;
      if (is_around && !unit.has_reduced && holds_gradient_of(unit, *segment)) {
        co_await end_backward(rank, unit, done, synchronise);
      }
    }
  }
  co_await UnitSharding::end_units_behind(rank, layer, done, synchronise);
}

void FairScaleFullySharded::check_backward(size_t layer) const {
  for (const size_t index : replica_.parameters_of(layer)) {
    const Unit& unit = units_[unit_of_[index]];
    if (unit.has_reduced && !unit.state.is_gathered()) {
      throw ProgramException(
          site_id(fully_sharded_sites::freed_unit),
          "RuntimeError: setStorage: storage of size 0: `" +
              replica_.network().parameter_name(replica_.parameters()[index].place) +
              "` has been freed: the backward of a checkpointed module has ended that of the unit "
              "around it");
    }
  }
}

bool FairScaleFullySharded::holds_gradient_of(const Unit& unit,
                                              const CheckpointedSegment& segment) const {
  return std::ranges::any_of(unit.state.parameters(), [&](size_t index) {
    const Replica::Parameter& parameter = replica_.parameters()[index];
    return segment.contains(parameter.place.layer) && replica_.wants_gradient(parameter);
  });
}

// Freed, and its gradients collected.
Program FairScaleFullySharded::end_backward(Rank& rank, Unit& unit, Ticket done, bool synchronise) {
  if (unit.stops_second_forward) {
    throw ProgramException(
        site_id(fully_sharded_sites::second_forward),
        "AssertionError: expected to be in states [BACKWARD_PRE, BACKWARD_POST] but current state "
        "is FORWARD: torch.utils.checkpoint has stopped its second forward within a unit");
  }
  unit.has_reduced = true;
  if (synchronise || reshards(unit)) {
    reshard(rank, unit);
  }
  if (!synchronise) {
    co_return;  // no_sync: the whole gradients stay on this rank
  }
  if (unit.state.is_sharded() && bucket_->takes(unit.state)) {
    bucket_->add(rank, unit.state, done);
    co_return;
  }
  const GradientDivision division = GradientDivision::over(rank.world_size());
  unit.state.reduce(rank, {reduce_group_, site_id(fully_sharded_sites::reduce_unit)}, nullptr,
                    division, done);
  unit.state.settle_gradients(rank, division, site_id(fully_sharded_sites::take_gradients));
}

Program FairScaleFullySharded::finish_backward(Rank& rank, bool synchronise) {
  for (Unit& unit : units_) {
    if (unit.is_root && unit.state.has_whole_gradients()) {
      co_await end_backward(rank, unit, {}, synchronise);
    }
    if (!unit.is_root && (synchronise || options_.reshard_after_forward)) {
      reshard(rank, unit);
    }
  }
  bucket_->flush(rank);
  bucket_->free(rank);
  if (synchronise) {
    await_settled(rank, site_id(fully_sharded_sites::take_gradients));
  }
}

// summon_full_params: every unit is gathered as it is stored, also what was gathered before, and
// nothing is afterwards. The state_dicts of units within it come before _post_state_dict_hook,
// which moves what it has to the CPU or clones it.
Program FairScaleFullySharded::gather_weights(Rank& rank, std::vector<Slice>* clones) {
  const ShardedUnit::Exchange exchange = shard_exchange(fully_sharded_sites::gather_state);
  const Ticket updated = rank.event({compute_stream, {}, exchange.site});
  std::vector<GatheredUnit> around;
  const auto leave = [&] {
    const GatheredUnit& gathered = around.back();
    if (clones != nullptr) {
      clones->push_back(clone_of(rank, *gathered.unit, gathered.whole));
    }
    if (gathered.whole.buffer != no_buffer) {
      rank.release(gathered.whole);
    }
    around.pop_back();
  };
  for (Unit& unit : units_) {
    while (!around.empty() && !around.back().unit->module.contains(unit.module)) {
      leave();
    }
    around.push_back({&unit, {}});
    if (unit.state.is_sharded()) {
      reshard(rank, unit);
      const ShardedUnit::Copy copy = unit.state.gather_copy(rank, exchange, updated);
      co_await rank.settle(copy.done);
      around.back().whole = copy.whole;
    }
  }
  while (!around.empty()) {
    leave();
  }
}

// What a script does with it is not stated: clones end with the statement.
Program FairScaleFullySharded::read_state_dict(Rank& rank, SiteId) {
  std::vector<Slice> clones;
  co_await gather_weights(rank, options_.state_dict_to_cpu ? nullptr : &clones);
  for (const Slice& clone : clones) {
    rank.release(clone);
  }
}

// summon_full_params with `recurse`: of all units, also those that are gathered already.
Program FairScaleFullySharded::begin_whole_parameters(Rank& rank) {
  const SiteId site = site_id(fully_sharded_sites::summon);
  const Ticket updated = rank.event({compute_stream, {}, site});
  for (Unit& unit : units_) {
    if (unit.state.is_sharded()) {
      reshard(rank, unit);
      co_await summoned_.gather(rank, unit.state, shard_exchange(fully_sharded_sites::summon),
                                updated);
    }
  }
}

// Rank 0 writes the whole parameters, and of the optimizer's state its own part.
Task<WrittenBytes> FairScaleFullySharded::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                          SiteId site) {
  std::vector<Slice> clones;
  co_await gather_weights(rank, options_.state_dict_to_cpu ? nullptr : &clones);
  const Bytes written = rank.id() == 0 ? own_checkpoint_bytes(request) : Bytes{};
  co_await write_file(rank, written, request, 1, site);
  for (const Slice& clone : clones) {
    rank.release(clone);
  }
  co_return written;
}

}  // namespace lockstep
