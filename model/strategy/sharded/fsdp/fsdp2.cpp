#include "model/strategy/sharded/fsdp/fsdp2.hpp"

#include <algorithm>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/sharded/fsdp/fsdp2_sites.hpp"
#include "model/strategy/tensor/tensor_parallel.hpp"

namespace lockstep {

FullyShard2::FullyShard2(const TrainingPlan& plan, const FullyShard2Options& options)
    : UnitSharding(plan, computing_in(plan, options.param_dtype),
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
  if (!options.casts_input || options.widens_output) {
    std::vector<WrappedModule> casting;
    if (options.casts_input) {
      casting = wrapped_modules(replica_.network(), options.wrap);
      casting.push_back({0, replica_.network().layers.size() - 1});
    }
    follow_types(casting, options.widens_output);
  }
}

// Construction

Program FullyShard2::setup(Rank& rank, Stage stage) {
  if (!std::exchange(is_set_up_, true)) {
    const int32_t replicas = rank.world_size() / options_.tensor_ranks;
    if (is_tensor_parallel()) {
      mesh_ = co_await make_tensor_mesh(rank, options_.tensor_ranks);
      shard_group_ = mesh_.data;
      replica_.state().share_layers(mesh_.tensor);
      tensor_ranks_ = mesh_.tensor;
    }
    replica_.state().allocate_without_parameters(rank);
    if (is_tensor_parallel()) {
      co_await distribute_parameters(rank, replica_, mesh_);
    }
    shard_ranks_ = options_.shard_ranks > 0 ? options_.shard_ranks : replicas;
    if (shard_ranks_ < replicas) {
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
               rank.id() / options_.tensor_ranks % shard_ranks_,
               [this](const std::vector<size_t>& parameters) { return layout_of(parameters); });
    for (Unit& unit : units_) {
      unit.state.reduce_only_given();
    }
    make_ignored(rank, options_.wrap);
  }
  if (stage == Stage::fit) {
    forget_optimizer(rank);
  }
}

ShardLayout FullyShard2::layout_of(const std::vector<size_t>& parameters) const {
  return ShardLayout::by_rows(rows_of(replica_, parameters), shard_ranks_);
}

// What a rank writes of a checkpoint in parts are the rows that it holds.
std::vector<int64_t> FullyShard2::kinds_of_ranks(const RanksOfRun& run) {
  const bool has_two_meshes =
      is_tensor_parallel() && (options_.shard_ranks > 0 || options_.reshard_to > 0);
  if (plan().numerics || has_two_meshes) {
    return {};
  }
  const int32_t replicas = run.all / options_.tensor_ranks;
  shard_ranks_ = options_.shard_ranks > 0 ? options_.shard_ranks : replicas;
  ShardKinds kinds(shard_ranks_);
  divide_by_pieces(kinds, options_.wrap,
                   [this](const std::vector<size_t>& parameters) { return layout_of(parameters); });
  std::vector<int64_t> of_ranks;
  for (int32_t rank = 0; rank < run.all; ++rank) {
    const int32_t shard = rank / options_.tensor_ranks % shard_ranks_;
    const bool is_first = rank % options_.tensor_ranks == 0;  // counts_in_norm
    of_ranks.push_back(2 * kinds.kinds()[static_cast<size_t>(shard)] + (is_first ? 0 : 1));
  }
  if (options_.saves_in_parts && run.writing_takes_time) {
    const std::vector<bool> stepped(plan().optimizers.size(), true);
    ShardedCheckpoint(replica_, plan(), {shard_ranks_, options_.tensor_ranks, stepped})
        .divide_by_parts(of_ranks);
  }
  return of_ranks;
}

Neighbourhoods FullyShard2::neighbourhoods_of_ranks(const RanksOfRun& run) {
  const bool is_replicated = options_.shard_ranks > 0 && options_.shard_ranks < run.all;
  const int32_t neighbours = std::max(
      {options_.tensor_ranks, is_replicated ? options_.shard_ranks : 1, options_.reshard_to});
  Neighbourhoods neighbourhoods =
      neighbours > 1 ? neighbours_in_order(run.all, neighbours) : Neighbourhoods();
  if (options_.tensor_ranks > 1 && neighbours > options_.tensor_ranks) {
    neighbourhoods.columns.clear();  // tensor ranks are some of them
  }
  return neighbourhoods;
}

bool FullyShard2::reshards(const Unit& unit) const {
  return options_.reshard_after_forward.value_or(options_.reshard_to > 0 || !unit.is_root);
}

GradientDivision FullyShard2::division(const Rank& rank) const {
  return GradientDivision::of_type(options_.reduce_dtype.value_or(computing_plan().parameter_dtype),
                                   rank.world_size() / options_.tensor_ranks);
}

// Forward and backward

Program FullyShard2::unshard(Rank& rank, Unit& unit, size_t) {
  const bool in_pairs = unit.state.keeps_larger_part();
  unit.state.gather(rank,
                    {in_pairs ? pair_group_ : shard_group_, site_id(fsdp2_sites::gather_unit)},
                    weights_ready_);
  co_return;
}

void FullyShard2::reshard_after_forward(Rank& rank, Unit& unit) {
  if (!reshards(unit)) {
    return;
  }
  if (options_.reshard_to > 0 && !unit.state.is_whole()) {
    unit.state.free_but_part(rank, options_.reshard_to, rank.id() % options_.reshard_to,
                             site_id(fsdp2_sites::free_unit));
  } else {
    reshard(rank, unit);
  }
}

Program FullyShard2::prefetch_backward(Rank& rank, Unit& unit) {
  if (Unit* const next = next_to_gather(unit)) {
    co_await unshard(rank, *next, next->gathered_at);
  }
}

// The gradient of a module's input exists behind the first of its layers that ran.
void FullyShard2::find_ends(const std::vector<BackwardPass>& passes) {
  const int64_t last = replica_.forwards().last();
  replica_.forwards().turn_to(passes.back().forward);
  for (const size_t layer : replica_.layers_last_to_first()) {
    for (Unit& unit : units_) {
      if (unit.module.contains(layer)) {
        unit.ends_at = layer;
      }
    }
  }
  replica_.forwards().turn_to(last);
}

// From outside in, and only where the hook of the module's input is called.
Program FullyShard2::end_units_behind(Rank& rank, size_t layer, Ticket done, bool synchronise) {
  for (Unit& unit : units_) {
    if (unit.ends_at == layer && replica_.passes_gradient_on(layer)) {
      co_await end_backward(rank, unit, done, synchronise);
    }
  }
}

// Freed, and its gradients reduced; one buffer of such a reduction exists at a time.
Program FullyShard2::end_backward(Rank& rank, Unit& unit, Ticket done, bool synchronise) {
  unit.has_reduced = true;
  reshard(rank, unit);
  if (!synchronise) {
    unit.state.keep_whole_gradients(rank, site_id(fsdp2_sites::take_gradients));
  }
  if (!synchronise || !unit.state.has_whole_gradients()) {
    co_return;
  }
  if (is_tensor_parallel()) {
    sum_partial_gradients(rank, replica_, mesh_.tensor, unit.state.parameters(), done);
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

// Modules whose input needs no gradient have no hook of their own: they end with the backward.
Program FullyShard2::finish_backward(Rank& rank, bool synchronise) {
  for (Unit& unit : units_) {
    if (!unit.has_reduced) {
      co_await end_backward(rank, unit, {}, synchronise);
    }
  }
  for (Unit& unit : units_) {
    unit.state.settle_gradients(rank, division(rank), site_id(fsdp2_sites::take_gradients));
  }
  reducing_ = nullptr;
}

// Shards are DTensors: the optimizer's loops over lists, which it takes on a GPU, and clipping
// refuse them beside plain tensors.
void FullyShard2::check_tensors(const UpdateOptions& options) const {
  if (!plan().is_on_gpu && options.clipping.algorithm == GradientClipping::Algorithm::none) {
    return;
  }
  if (updates_shards(options.optimizer) && updates_ignored(options.optimizer)) {
    throw ProgramException(
        site_id(steps_.update),
        "RuntimeError: got mixed torch.Tensor and DTensor: the optimizer is given shards and "
        "`ignored_params` in one list (freeze what is ignored, or give it an optimizer of its "
        "own)");
  }
}

// In order of definition: every rank adds up norms of the same tensors.
std::vector<PartOfTensor> FullyShard2::parts_of_step(const OptimizerPlan& optimizer) {
  std::vector<PartOfTensor> parts;
  for (Unit& unit : units_) {
    for (const size_t index : unit.state.parameters()) {
      const Replica::Parameter& parameter = replica_.parameters()[index];
      if (!parameter.trainable || !optimizer.holds(parameter.place.layer) ||
          !unit.state.has_gradient(index)) {
        continue;
      }
      const auto piece =
          std::ranges::find(unit.state.pieces(), index, &ShardedUnit::Piece::parameter);
      PartOfTensor& part = parts.emplace_back();
      part.parameter = index;
      part.tensor = piece == unit.state.pieces().end() ? nullptr : &piece->tensor;
      part.over.push_back(shard_group_);
      if (is_tensor_parallel() && replica_.network().parameter(parameter.place).cut) {
        part.over.push_back(tensor_ranks_.group);
      }
    }
  }
  for (const size_t index : ignored_) {
    Replica::Parameter& parameter = replica_.parameters()[index];
    if (parameter.trainable && optimizer.holds(parameter.place.layer)) {
      parts.push_back({index, &parameter.tensor});
    }
  }
  std::ranges::sort(parts, {}, &PartOfTensor::parameter);
  return parts;
}

Program FullyShard2::update(Rank& rank, const OptimizerPlan& optimizer, const StepTensors& step) {
  const std::vector<PartOfTensor> parts = parts_of_step(optimizer);
  for (const PartOfTensor& part : parts) {
    if (!part.over.empty()) {
      check_distributed(optimizer, replica_, part.parameter, site_id(steps_.update));
    }
  }
  if (rule_of(optimizer.kind).is_elementwise()) {
    co_await UnitSharding::update(rank, optimizer, step);
    co_return;
  }
  const ComputeOptions there = place_of_update();
  co_await step_over_ranks(rank, optimizer, kernels_of(plan()), parts, there,
                           fsdp2_sites::share_update_norm);
}

std::vector<KnownDifference> FullyShard2::known_differences() {
  std::vector<KnownDifference> known = UnitSharding::known_differences();
  add_ignored_difference("ignored_params", known);
  return known;
}

std::vector<HeldParameter> FullyShard2::held_parameters() {
  std::vector<HeldParameter> held;
  for (const HeldParameter& part : UnitSharding::held_parameters()) {
    for (const HeldParameter& stretch : in_whole(replica_, mesh_.tensor, part)) {
      held.push_back(stretch);
    }
  }
  return held;
}

}  // namespace lockstep
