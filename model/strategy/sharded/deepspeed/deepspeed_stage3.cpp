#include "model/strategy/sharded/deepspeed/deepspeed_stage3.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "model/strategy/layout/shard_kinds.hpp"
#include "model/strategy/local_model/forward_of.hpp"
#include "model/strategy/local_model/statistics_kept_apart.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"

namespace lockstep {

using namespace deepspeed_sites;

namespace {

std::vector<std::vector<size_t>> modules_of_layers(const std::vector<ModuleRange>& modules,
                                                   size_t layers) {
  std::vector<std::vector<size_t>> of_layers(layers);
  for (size_t module = 0; module < modules.size(); ++module) {
    for (size_t layer = modules[module].first; layer <= modules[module].last; ++layer) {
      of_layers[layer].push_back(module);
    }
  }
  return of_layers;
}

}  // namespace

DeepSpeedSharded::DeepSpeedSharded(const TrainingPlan& plan, const DeepSpeedOptions& options)
    : DistributedStrategy(plan),
      options_(options),
      computing_plan_(in_deepspeed_types(plan)),
      replica_(computing_plan_, DeviceId{0}),
      modules_(hooked_modules(*plan.network)),
      modules_of_(modules_of_layers(modules_, replica_.network().layers.size())),
      entered_(modules_.size(), false),
      has_run_again_(modules_.size(), false),
      scaler_(options.loss_scale),
      transfers_({data_to_devices, gradients_reduced}) {}

std::string_view DeepSpeedSharded::name() const {
  if (options_.drive.optimizer || options_.drive.parameters) {
    return "deepspeed_stage_3_offload_nvme";
  }
  return options_.offloads_optimizer ? "deepspeed_stage_3_offload" : "deepspeed_stage_3";
}

// Construction

Program DeepSpeedSharded::setup(Rank& rank, Stage stage) {
  if (!partitions_) {
    co_await allocate(rank);
  }
  if (stage == Stage::fit) {
    master_->forget_optimizer(rank);
  }
}

ShardLayout DeepSpeedSharded::layout_of_parts(const std::vector<size_t>& parameters,
                                              int32_t ranks) const {
  std::vector<ShardLayout::Rows> rows;
  for (const size_t index : parameters) {
    const ParameterPlace place = replica_.parameters()[index].place;
    rows.push_back({replica_.network().parameter(place).elements(), 1});
  }
  return ShardLayout::by_rows(rows, ranks);
}

// Parts are padded wherever they travel or lie, but for the copies that are updated.
std::vector<int64_t> DeepSpeedSharded::kinds_of_ranks(const RanksOfRun& run) {
  if (plan().numerics) {
    return {};
  }
  std::vector<size_t> trainable;
  std::vector<int64_t> each_by_itself;
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    if (replica_.parameters()[index].trainable) {
      trainable.push_back(index);
      each_by_itself.push_back(static_cast<int64_t>(index));
    }
  }
  ShardKinds kinds(run.all);
  kinds.divide(layout_of_parts(trainable, run.all), each_by_itself);
  return kinds.kinds();
}

Neighbourhoods DeepSpeedSharded::neighbourhoods_of_ranks(const RanksOfRun& run) {
  return options_.second_partition_ranks > 1
             ? neighbours_in_order(run.all, static_cast<int32_t>(options_.second_partition_ranks))
             : Neighbourhoods();
}

Program DeepSpeedSharded::allocate(Rank& rank) {
  replica_.state().allocate_without_parameters(rank);
  partitions_.emplace(replica_, rank.world_size(),
                      options_.offloads_parameters ? host_device : DeviceId{0}, options_);
  constexpr uint64_t variant = 0;  // rank 0's become everybody's
  partitions_->allocate(rank, variant);
  // 1. The engine sends whole parameters, cuts them, and sends them once more.
  for (int turn = 0; turn < 2; ++turn) {
    co_await partitions_->send_first_values(rank, site_id(send_states));
    const auto near =
        static_cast<int32_t>(std::min<int64_t>(options_.second_partition_ranks, rank.world_size()));
    if (turn == 0 && options_.second_partition_ranks > 1) {
      co_await partitions_->use_second_parts(rank, near, site_id(make_groups));
    }
  }
  for (int turn = 0; turn < 3; ++turn) {
    co_await framework_barrier(rank, world_group, plan().barrier_is_all_reduce,
                               site_id(start_barrier));
  }
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    partitions_->gather(rank, {index}, site_id(deepspeed_sites::fetch));
    partitions_->wait(rank, index, site_id(wait_for_parameters));
    partitions_->free(rank, index);
  }
  std::vector<std::vector<size_t>> parameters_of_modules;
  for (const ModuleRange& module : modules_) {
    parameters_of_modules.push_back(module.is_layer ? replica_.parameters_of(module.first)
                                                    : std::vector<size_t>());
  }
  fetcher_.emplace(options_, *partitions_, std::move(parameters_of_modules));
  if (!plan().is_fitted) {
    co_return;
  }
  master_.emplace(replica_, partitions_->trainable(),
                  layout_of_parts(partitions_->trainable(), rank.world_size()),
                  options_.offloads_optimizer ? host_device : DeviceId{0}, true);
  if (options_.drive.optimizer) {
    master_->use_drive(options_.drive, partitions_->sub_groups());
  } else {
    master_->divide_in(partitions_->sub_groups());
  }
  master_->allocate(rank, rank.id(), variant);
  reduction_.emplace(replica_, *master_, options_);
  reduction_->allocate(rank);
}

// Modules

// Hooks run where a module begins: in a forward at its first layer, in a backward at its last.
void DeepSpeedSharded::enter(Rank& rank, size_t layer) {
  for (const size_t module : modules_of_[layer]) {
    if (!entered_[module]) {
      entered_[module] = true;
      fetcher_->fetch(rank, module);
    }
  }
}

// The forward of a checkpointed segment runs again, with the hooks of the modules in it. It stops
// in the last one that saves anything, which so keeps what it has gathered until its backward.
// Every forward counts one backward that has yet to come (ds_grads_remaining), and a module is
// released where none is left: before 0.16.8, whose count begins anew in every forward, that is
// never after a second one (deepspeed/runtime/zero/parameter_offload.py,
// _post_backward_module_hook).
void DeepSpeedSharded::run_again(Rank& rank, size_t layer) {
  const std::vector<size_t> layers = replica_.begin_recomputation(layer);
  if (layers.empty()) {
    return;
  }
  const CheckpointedSegment& segment = *replica_.network().segment_of(layer);
  const bool calls_modules = segment.recomputation != Recomputation::attention_core;
  const size_t stop = last_that_saves(replica_.network(), layers);
  std::vector<bool> running(modules_.size(), false);
  for (const size_t again : layers) {
    for (size_t module = 0; module < modules_.size() && calls_modules && again <= stop; ++module) {
      const ModuleRange& range = modules_[module];
      const bool is_inside = segment.first <= range.first && range.last <= segment.last;
      if (is_inside && range.first <= again && again <= range.last && !running[module]) {
        running[module] = true;
        has_run_again_[module] = true;
        fetcher_->fetch(rank, module);
      }
    }
    replica_.recompute(rank, again);
    for (size_t module = modules_.size(); module-- > 0;) {
      if (running[module] && modules_[module].last == again && again < stop) {
        running[module] = false;
        fetcher_->release(rank, module);
      }
    }
  }
}

void DeepSpeedSharded::leave(Rank& rank, size_t layer, bool backward) {
  for (const size_t module : std::views::reverse(modules_of_[layer])) {
    const ModuleRange& range = modules_[module];
    const bool ends = backward ? range.first == layer : range.last == layer;
    if (ends && entered_[module]) {
      entered_[module] = false;
      // A hook behind a backward hangs on the gradient of the module's input; the input of the
      // first layer that trains has none.
      const bool has_hook = !backward || replica_.passes_gradient_on(layer);
      const bool is_counted_twice = has_run_again_[module] && plan().deepspeed < Version{0, 16, 8};
      if (has_hook && !(backward && is_counted_twice)) {
        fetcher_->release(rank, module);
      }
    }
  }
}

// runtime/engine.py: an engine that only evaluates has none.
void DeepSpeedSharded::require_optimizer(const char* use) const {
  if (!master_) {
    throw ProgramException(
        site_id(update),
        fmt::format("AssertionError: must provide optimizer during init in order to use {}", use));
  }
}

// One iteration

Program DeepSpeedSharded::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  co_await rank.settle(loss_ready_);  // the host runs at most one step ahead of the device
  if (reduction_) {
    co_await reduction_->settle(rank);
  }
  transfers_.begin_forward(options.training);
  co_await fetcher_->begin_micro_batch(rank);
  replica_.begin_forward(rank, batch, options);
  std::fill(entered_.begin(), entered_.end(), false);
  for (size_t layer = 0; layer < replica_.network().layers.size(); ++layer) {
    const bool runs = replica_.runs(layer, options);
    if (runs) {
      enter(rank, layer);
    }
    replica_.forward_layer(rank, layer, options);
    if (runs) {
      leave(rank, layer, false);
    }
  }
  loss_ready_ = replica_.end_forward(rank, options);
  co_await await_routing(rank, replica_, loss_ready_);
  transfers_.add(data_to_devices, replica_.batch_bytes());
}

Program DeepSpeedSharded::backward(Rank& rank, const StepOptions& asked) {
  require_optimizer("backward");
  StepOptions options = asked;
  if (computing_plan_.parameter_dtype == DType::fp16) {
    options.loss_factor *= loss_scale_of(scaler_);
  }
  const int64_t last = replica_.forwards().last();
  const std::vector<BackwardPass> passes = replica_.forwards().take_passes(options);
  reduction_->begin(rank, options.synchronise);
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    replica_.forwards().turn_to(passes[pass].forward);
    replica_.backward_of_loss(rank, passes[pass].applied_to(options));
    std::fill(entered_.begin(), entered_.end(), false);
    for (const size_t layer : replica_.layers_last_to_first()) {
      enter(rank, layer);
      run_again(rank, layer);
      const Ticket done = replica_.backward(rank, layer);
      if (!replica_.adds_later(passes, pass, layer)) {
        reduction_->gradients_ready(rank, layer, done);
      }
      leave(rank, layer, true);
    }
    replica_.forget_forward(rank);
  }
  replica_.forwards().return_to(last);
  co_await reduction_->finish(rank);
  for (const Bytes bytes : reduction_->take_exchanged_bytes()) {
    transfers_.add(gradients_reduced, bytes);
  }
}

std::string DeepSpeedSharded::no_sync_refusal() const { return no_sync_refusal_of(options_.stage); }

std::vector<KnownDifference> DeepSpeedSharded::known_differences() {
  std::vector<KnownDifference> known = skipped_steps(scaler_);
  if (master_) {
    master_->add_differences(known);
  }
  add_statistics_kept_apart(replica(), plan().world_size, engine_sends_no_statistics, known);
  add_update_by_own_norms(plan(), known);
  return known;
}

void DeepSpeedSharded::update_parameters(Rank& rank, const MasterPartition::Step& step) {
  const auto pass_on = [&](const Slice& updated, int64_t begin) {
    partitions_->take_updated(rank, *master_, updated, begin, site_id(gather_parameters));
  };
  if (master_->is_on_drive()) {
    master_->update_on_drive(rank, step, pass_on);
  } else {
    master_->update(rank, step);
    pass_on(master_->values(), 0);
  }
}

Program DeepSpeedSharded::optimizer_step(Rank& rank, const UpdateOptions& options) {
  require_optimizer("step");
  const bool is_fp16 = computing_plan_.parameter_dtype == DType::fp16;
  MasterPartition::Step step;
  step.options = options_.with_clipping(options);
  step.loss_scale = is_fp16 ? scaler_.scale() : 1;
  step.norm_dtype = options_.offloads_optimizer ? DType::fp32 : DType::fp64;
  step.norm_calls = static_cast<int32_t>(partitions_->sub_groups().size());
  step.norm_site = site_id(share_norm);
  step.update_site = site_id(update);
  if (is_fp16) {
    co_await share_flag(rank, site_id(share_overflow));
  }
  fetcher_->release_all(rank);
  master_->begin_step(rank, step);
  bool takes_step = true;
  if (is_fp16) {
    takes_step = co_await master_->is_finite(rank);
    note_step(scaler_, !takes_step);
  }
  if (takes_step) {
    update_parameters(rank, step);
  } else {
    master_->end_step(rank);
  }
  if (takes_step) {
    partitions_->drop_second_parts(rank);
  }
  fetcher_->gather_persistent(rank);
  transfers_.end_step();
}

Program DeepSpeedSharded::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  if (master_) {
    master_->drop_gradients(rank);
  }
  replica_.zero_gradients(rank, optimizer, set_to_none);
  co_return;
}

std::vector<HeldParameter> DeepSpeedSharded::held_parameters() {
  std::vector<HeldParameter> held =
      master_ ? master_->held_parameters() : std::vector<HeldParameter>();
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    const Slice& part = partitions_->part_of(index);
    const int64_t first = partitions_->index() * part.elements;
    const int64_t elements = std::min(part.elements, partitions_->elements_of(index) - first);
    const bool is_here = !master_ || !replica_.parameters()[index].trainable;
    if (is_here && elements > 0) {
      held.push_back({index, first, part.part(0, elements)});
    }
  }
  std::sort(held.begin(), held.end(), [](const HeldParameter& a, const HeldParameter& b) {
    return a.parameter < b.parameter;
  });
  return held;
}

// Parameters are those of the fp32 partitions alone, but for what is frozen. What was kept gathered
// is freed first, and gathered again.
Task<WrittenBytes> DeepSpeedSharded::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                     SiteId site) {
  fetcher_->release_all(rank);
  EngineCheckpoint saved;
  saved.barrier_is_all_reduce = plan().barrier_is_all_reduce;
  saved.compares_tags = options_.compares_tags;
  for (const Replica::Buffer& buffer : replica_.buffers()) {
    saved.model += buffer.value.bytes();
  }
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    if (!replica_.parameters()[index].trainable && options_.saves_frozen) {
      saved.model += partitions_->part_of(index).bytes();
    }
  }
  if (master_) {
    const int tensors = 1 + state_tensors(plan().optimizers.front());
    const int64_t in_memory =
        master_->is_on_drive() ? master_->elements_in_memory() : master_->layout().shard_elements();
    // In fp32 whatever the model's own type is. Files of the drive are copied as they are.
    saved.partition = Bytes(size_of(DType::fp32)) * in_memory * tensors + master_->bytes_on_drive();
  }
  const Bytes written = co_await save_engine_checkpoint(rank, saved, request, site);
  fetcher_->gather_persistent(rank);
  co_await framework_barrier(rank, world_group, plan().barrier_is_all_reduce, site);
  co_return written;
}

}  // namespace lockstep
