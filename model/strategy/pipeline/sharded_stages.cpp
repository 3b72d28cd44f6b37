#include "model/strategy/pipeline/sharded_stages.hpp"

#include <algorithm>

#include "model/strategy/layout/shard_kinds.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"
#include "model/strategy/sharded/fsdp/fsdp2_sites.hpp"
#include "model/strategy/sharded/fsdp/unit_modules.hpp"
#include "model/strategy/tensor/tensor_mesh.hpp"

namespace lockstep {

namespace {

WrappedModule module_of(const StageLayers& stage) { return {stage.first, stage.end - 1}; }

}  // namespace

void ShardedStages::add_stage(Rank& rank, const ShardingRanks& ranks, int32_t stage,
                              const StageLayers& layers) {
  ranks_ = ranks;
  const DType gathered = replica_->plan().parameter_dtype;
  constexpr uint64_t variant = 0;  // seed_everything: every rank has drawn the same model
  for (UnitModule& found : unit_modules(*replica_, options_.wrap, module_of(layers))) {
    const ShardLayout layout =
        ShardLayout::by_rows(rows_of(*replica_, found.parameters), ranks.shards);
    Unit& unit = units_.emplace_back(
        Unit{stage,
             found.module,
             found.is_root,
             false,
             ShardedUnit(*replica_, std::move(found.parameters), layout,
                         {stored_, gathered, options_.reduce_dtype.value_or(gathered)}),
             {}});
    unit.state.communicate_on(stream(queue::first_group));
    unit.state.reduce_only_given();
    if (options_.offload) {
      constexpr bool accumulates = true;
      unit.state.offload(accumulates);
    }
    unit.state.allocate(rank, ranks.index, variant);
  }
}

// Forward

void ShardedStages::begin_step(Rank& rank) {
  weights_ready_ = rank.event({compute_stream, {}, site_id(fsdp2_sites::gather_unit)});
}

void ShardedStages::enter_layer(Rank& rank, size_t layer) {
  for (Unit& unit : units_) {
    if (unit.module.first == layer) {
      gather_unit(rank, unit);
      unit.state.await_gathered(rank, site_id(fsdp2_sites::wait_for_unit));
    }
  }
}

// Inner units before those around them. The outermost one of a stage stays, if nothing else is
// asked for.
void ShardedStages::leave_layer(Rank& rank, size_t layer) {
  for (size_t index = units_.size(); index-- > 0;) {
    Unit& unit = units_[index];
    if (unit.module.last == layer && options_.reshard_after_forward.value_or(!unit.is_root)) {
      free_unit(rank, unit);
    }
  }
}

// Backward

void ShardedStages::begin_backward(int32_t stage, int32_t micro_batch) {
  for (Unit& unit : units_) {
    if (unit.stage != stage) {
      continue;
    }
    unit.in_backward = false;
    if (unit.state.is_gathered()) {
      unit.found_for.insert(micro_batch);
    } else {
      unit.found_for.erase(micro_batch);
    }
  }
}

bool ShardedStages::finds_weights(int32_t micro_batch, size_t layer) {
  for (const Unit& unit : units_) {
    for (const size_t parameter : replica_->parameters_of(layer)) {
      const std::vector<size_t>& own = unit.state.parameters();
      if (std::ranges::count(own, parameter) > 0 && !unit.found_for.contains(micro_batch)) {
        has_lost_gradients_ = true;
        return false;
      }
    }
  }
  return true;
}

void ShardedStages::rename_micro_batches(int32_t later) {
  for (Unit& unit : units_) {
    const std::set<int32_t> before = std::exchange(unit.found_for, {});
    for (const int32_t micro_batch : before) {
      unit.found_for.insert(micro_batch + later);
    }
  }
}

void ShardedStages::find_weights_again(int32_t stage, int32_t micro_batch) const {
  for (const Unit& unit : units_) {
    if (unit.stage == stage && unit.found_for.contains(micro_batch) && !unit.state.is_gathered()) {
      throw ProgramException(
          site_id(pipeline_sites::weight_gradient),
          "KeyError: <AccumulateGrad object>: torch's stage_backward_weight looks for parameters "
          "that a forward has freed since the backward of the input; set reshard_after_forward: "
          "false");
    }
  }
}

// Each unit, and then the one whose backward comes next. What a checkpointed segment runs again is
// gathered with its first layer, and stays.
void ShardedStages::enter_backward(Rank& rank, size_t layer) {
  for (Unit& unit : units_) {
    if (!unit.module.contains(layer)) {
      continue;
    }
    gather_unit(rank, unit);
    unit.state.await_gathered(rank, site_id(fsdp2_sites::wait_for_unit));
    if (!std::exchange(unit.in_backward, true)) {
      gather_ahead(rank, unit);
    }
  }
  for (const size_t again : replica_->begin_recomputation(layer)) {
    enter_layer(rank, again);
    replica_->recompute(rank, again);
  }
}

// The unit whose forward ended before this one's.
void ShardedStages::gather_ahead(Rank& rank, const Unit& unit) {
  const auto ends_before = [](const Unit& a, const Unit& b) {
    return a.module.last < b.module.last ||
           (a.module.last == b.module.last && a.module.first > b.module.first);
  };
  Unit* next = nullptr;
  for (Unit& other : units_) {
    if (other.stage == unit.stage && ends_before(other, unit) &&
        (next == nullptr || ends_before(*next, other))) {
      next = &other;
    }
  }
  if (next != nullptr) {
    gather_unit(rank, *next);
  }
}

void ShardedStages::leave_backward(Rank& rank, size_t layer) {
  for (Unit& unit : units_) {
    if (unit.module.first == layer && replica_->passes_gradient_on(layer)) {
      unit.state.keep_whole_gradients(rank, site_id(fsdp2_sites::take_gradients));
    }
  }
}

// Modules whose input needs no gradient end with the backward.
void ShardedStages::end_backward(Rank& rank, int32_t stage) {
  for (Unit& unit : units_) {
    if (unit.stage == stage) {
      unit.state.keep_whole_gradients(rank, site_id(fsdp2_sites::take_gradients));
    }
  }
}

void ShardedStages::gather(Rank& rank, int32_t stage) {
  for (Unit& unit : units_) {
    if (unit.stage == stage) {
      gather_unit(rank, unit);
    }
  }
}

void ShardedStages::free(Rank& rank, int32_t stage) {
  for (Unit& unit : units_) {
    if (unit.stage == stage) {
      free_unit(rank, unit);
    }
  }
}

ShardedUnit::Exchange ShardedStages::shard_exchange(std::string_view site) const {
  return {ranks_.shard, site_id(site)};
}

void ShardedStages::gather_unit(Rank& rank, Unit& unit) {
  if (!unit.state.is_gathered()) {
    unit.state.gather(rank, shard_exchange(fsdp2_sites::gather_unit), weights_ready_);
  }
}

void ShardedStages::free_unit(Rank& rank, Unit& unit) {
  if (unit.state.is_gathered() && !unit.state.is_whole()) {
    unit.state.free(rank);
  }
}

// Gradients

GradientDivision ShardedStages::division() const {
  return GradientDivision::of_type(options_.reduce_dtype.value_or(replica_->plan().parameter_dtype),
                                   int64_t{ranks_.shards} * ranks_.replicas);
}

void ShardedStages::settle(Rank& rank, Unit& unit) {
  unit.state.settle_gradients(rank, division(), site_id(fsdp2_sites::take_gradients));
}

// One buffer of a reduction exists at a time.
std::vector<Bytes> ShardedStages::reduce_gradients(Rank& rank, int32_t stage, double factor) {
  std::vector<Bytes> reduced;
  Unit* reducing = nullptr;
  for (Unit& unit : units_) {
    if (unit.stage != stage) {
      continue;
    }
    free_unit(rank, unit);
    if (!unit.state.has_whole_gradients()) {
      continue;
    }
    if (ranks_.tensor.ranks > 1) {
      sum_partial_gradients(rank, *replica_, ranks_.tensor, unit.state.parameters(), {});
    }
    if (reducing != nullptr) {
      settle(rank, *reducing);
    }
    const ShardedUnit::Exchange across{ranks_.replica.value_or(world_group),
                                       site_id(fsdp2_sites::reduce_replicas)};
    unit.state.reduce(rank, shard_exchange(fsdp2_sites::reduce_unit),
                      ranks_.replica ? &across : nullptr, division(), {});
    reduced.push_back(Bytes(size_of(unit.state.reduced_dtype())) *
                      unit.state.layout().tensor_elements());
    reducing = &unit;
  }
  if (reducing != nullptr) {
    settle(rank, *reducing);
  }
  if (factor != 1) {
    scale(rank, stage, factor);
  }
  return reduced;
}

// torch divides all that is there, what an earlier batch has left among it (stage.py, scale_grads).
void ShardedStages::scale(Rank& rank, int32_t stage, double factor) {
  std::vector<Slice> gradients;
  for (const Unit& unit : units_) {
    for (const ShardedUnit::Piece& piece : unit.state.pieces()) {
      if (unit.stage == stage && piece.tensor.gradient.buffer != no_buffer) {
        gradients.push_back(piece.tensor.gradient);
      }
    }
  }
  if (!gradients.empty()) {
    elementwise(rank, Kernel::scale, gradients, gradients, factor,
                {stream(queue::compute, device()), {}, site_id(pipeline_sites::scale_gradients)});
  }
}

// The update

ShardedStages::StepTensors ShardedStages::tensors_of_step(const OptimizerPlan& optimizer) {
  StepTensors all;
  for (Unit& unit : units_) {
    all.trained += std::ranges::count_if(unit.state.parameters(), [this](size_t index) {
      return replica_->parameters()[index].trainable;
    });
    for (ShardedUnit::Piece& piece : unit.state.pieces()) {
      const Replica::Parameter& parameter = replica_->parameters()[piece.parameter];
      if (!parameter.trainable || !optimizer.holds(parameter.place.layer)) {
        continue;
      }
      all.given.push_back(piece.parameter);
      all.tensors.push_back(&piece.tensor);
      if (piece.tensor.gradient.buffer == no_buffer) {
        continue;
      }
      all.gradients.push_back(piece.tensor.gradient);
      if (counts_in_norm(*replica_, ranks_.tensor, piece.parameter)) {
        all.counted.push_back(piece.tensor.gradient);
      }
    }
  }
  return all;
}

// A norm is a DTensor of the stage's mesh: its ranks add up one number for each parameter, those
// of the pipeline the sum of them.
void ShardedStages::clip(Rank& rank, const UpdateOptions& options, const StepTensors& step,
                         const std::optional<GroupId>& pipeline) {
  SharedNorm norm{{}, site_id(fsdp2_sites::share_norm)};
  norm.counted = &step.counted;
  const int64_t elements = std::max<int64_t>(1, step.trained);
  if (ranks_.shards > 1) {
    norm.sums.push_back({ranks_.shard, elements});
  }
  if (ranks_.tensor.ranks > 1) {
    sum_across_plan(norm, *replica_, ranks_.tensor, step.given, step.gradients, elements,
                    site_id(fsdp2_sites::update));
  }
  if (pipeline) {
    norm.sums.push_back({*pipeline});
  }
  clip_gradients(rank, options.clipping, step.gradients, device(),
                 norm.sums.empty() ? nullptr : &norm);
}

Program ShardedStages::optimizer_step(Rank& rank, const UpdateOptions& options,
                                      const std::optional<GroupId>& pipeline) {
  const OptimizerPlan optimizer =
      scheduled(replica_->plan().optimizers[options.optimizer], options);
  const StepTensors step = tensors_of_step(optimizer);
  clip(rank, options, step, pipeline);
  const Ticket updated = lockstep::optimizer_step(
      rank, optimizer, kernels_of(replica_->plan()), step.tensors,
      {stream(queue::compute, device()), {}, site_id(fsdp2_sites::update)});
  if (updated && device() == host_device) {
    co_await rank.settle(updated);  // the host computes it, and goes on when it is done
  }
}

void ShardedStages::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  for (Unit& unit : units_) {
    unit.state.zero_gradients(rank, optimizer, set_to_none, site_id(fsdp2_sites::zero_gradients));
  }
}

void ShardedStages::forget_optimizer(Rank& rank) {
  for (Unit& unit : units_) {
    unit.state.forget_optimizer(rank);
  }
}

std::vector<HeldParameter> ShardedStages::held_parameters() const {
  std::vector<HeldParameter> held;
  for (const Unit& unit : units_) {
    for (const ShardedUnit::Piece& piece : unit.state.pieces()) {
      held.push_back({piece.parameter, piece.first_element, piece.tensor.value});
    }
  }
  std::ranges::stable_sort(held, {}, &HeldParameter::parameter);
  return held;
}

Bytes ShardedStages::bytes_of_parts(bool with_optimizer) const {
  Bytes bytes{};
  for (const Unit& unit : units_) {
    for (const ShardedUnit::Piece& piece : unit.state.pieces()) {
      bytes += piece.tensor.value.bytes();
      for (const Slice& state : piece.tensor.state) {
        bytes += with_optimizer ? state.bytes() : Bytes{};
      }
    }
  }
  return bytes;
}

std::vector<int64_t> kinds_of_parts(const Replica& replica, const FullyShard2Options& options,
                                    const std::vector<StageLayers>& stages, int32_t shards) {
  ShardKinds kinds(shards);
  for (const StageLayers& stage : stages) {
    for (const UnitModule& unit : unit_modules(replica, options.wrap, module_of(stage))) {
      const std::vector<int64_t> each(unit.parameters.begin(), unit.parameters.end());
      kinds.divide(ShardLayout::by_rows(rows_of(replica, unit.parameters), shards), each);
    }
  }
  return kinds.kinds();
}

}  // namespace lockstep
