#include "model/strategy/sharded/deepspeed/deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/statistics_kept_apart.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"

namespace lockstep {

using namespace deepspeed_sites;

namespace {
constexpr std::string_view parameters_gathered = "parameters_gathered";

// _round_robin_reorder: the tensors of every rank in turn, so that all have work from the beginning
// of a backward on.
std::vector<size_t> in_round_robin(const std::vector<size_t>& parameters, int32_t ranks) {
  std::vector<size_t> reordered;
  for (size_t first = 0; first < static_cast<size_t>(ranks); ++first) {
    for (size_t i = first; i < parameters.size(); i += static_cast<size_t>(ranks)) {
      reordered.push_back(parameters[i]);
    }
  }
  return reordered;
}

// stage_1_and_2.py: average_tensor, and buffered_reduce_fallback where no buffer holds gradients.
// Up to 0.12.3 each slice of a rank goes by itself; 0.12.4 has use_multi_rank_bucket_allreduce,
// whose other way reduced nothing before allreduce_bucket of 0.13.0 heeded the rank.
PartitionReductionOptions::Call call_of(const DeepSpeedOptions& options, const Version& release) {
  using Call = PartitionReductionOptions::Call;
  if (!options.reduce_scatter || !options.contiguous_gradients) {
    return Call::all_reduce;
  }
  if (release < Version{0, 12, 4}) {
    return Call::reduce_of_slices;
  }
  if (options.use_multi_rank_bucket_allreduce) {
    return Call::all_reduce_of_parts;
  }
  return release < Version{0, 13, 0} ? Call::all_reduce_of_owners : Call::reduce_to_owners;
}

PartitionReductionOptions reduction_options(const DeepSpeedOptions& options,
                                            const Version& release) {
  PartitionReductionOptions reduction;
  reduction.bucket_elements = options.reduce_bucket_size;
  reduction.during_backward = options.stage == 2 || options.overlap_comm;
  reduction.at_boundary_only = options.stage == 1;
  reduction.overlap_comm = options.overlap_comm;
  reduction.contiguous_gradients = options.contiguous_gradients;
  reduction.call = call_of(options, release);
  reduction.communicated = options.communication_data_type;
  // average_tensor and allreduce_bucket of ZeRO's own divide before the sum, whatever is
  // configured.
  if (!options.reduce_scatter && options.contiguous_gradients) {
    reduction.division = options.division;
  }
  return reduction;
}

}  // namespace

// engine.py, no_sync.
std::string no_sync_refusal_of(int64_t stage) {
  constexpr int64_t first_that_divides_gradients = 2;
  return stage < first_that_divides_gradients
             ? ""
             : fmt::format(
                   "AssertionError: no_sync context manager is incompatible with gradient "
                   "partitioning logic of ZeRO stage {} (leave it out: gradients add up "
                   "until the step; or use stage 1)",
                   stage);
}

double loss_scale_of(const LossScaler& scaler) {
  if (scaler.is_too_large()) {
    throw ProgramException(site_id(scale_loss),
                           "OverflowError: int too big to convert (2 to the power of "
                           "initial_scale_power; at most 63)");
  }
  return scaler.scale();
}

void note_step(LossScaler& scaler, bool overflowed) {
  if (overflowed && scaler.is_at_minimum()) {
    throw ProgramException(site_id(scale_loss),
                           "Current loss scale already at minimum - cannot decrease scale anymore. "
                           "Exiting run.");
  }
  scaler.note_step(overflowed);
}

std::vector<KnownDifference> skipped_steps(const LossScaler& scaler) {
  if (scaler.skipped_steps() == 0) {
    return {};
  }
  return {{fmt::format("{} optimizer step{} skipped, because gradients overflowed under the loss "
                       "scale, which is {} now",
                       scaler.skipped_steps(), scaler.skipped_steps() == 1 ? " was" : "s were",
                       scaler.scale()),
           "start with a smaller scale: initial_scale_power"}};
}

KnownDifference skipped_without_scale(int64_t steps) {
  return {fmt::format("{} optimizer step{} skipped, because gradients were not finite", steps,
                      steps == 1 ? " was" : "s were"),
          "look for the batch or layer whose loss is not finite"};
}

Program share_flag(Rank& rank, SiteId site) {
  const Slice flag = rank.allocate(Purpose::communication, DType::uint8, 1);
  const Ticket ready = rank.event({compute_stream, {}, site});
  const Ticket shared =
      rank.all_reduce(world_group, flag, Reduction::max, {communication_stream, {ready}, site});
  co_await rank.settle(shared);
  rank.release(flag);
}

TrainingPlan in_deepspeed_types(TrainingPlan plan) {
  plan.parameter_dtype = plan.activation_dtype;
  return plan;
}

DeepSpeedPartitioned::DeepSpeedPartitioned(const TrainingPlan& plan,
                                           const DeepSpeedOptions& options)
    : ReplicatedDataParallel(plan, in_deepspeed_types(plan), gradients_reduced),
      options_(options),
      scaler_(options.loss_scale) {}

std::string_view DeepSpeedPartitioned::name() const {
  if (options_.offloads_optimizer) {
    return options_.stage == 1 ? "deepspeed_stage_1_offload" : "deepspeed_stage_2_offload";
  }
  return options_.stage == 1 ? "deepspeed_stage_1" : "deepspeed_stage_2";
}

// Construction

Program DeepSpeedPartitioned::setup(Rank& rank, Stage stage) {
  if (!replica().is_allocated()) {
    allocate(rank);
    co_await send_states(rank);  // 1. the engine's start
  }
  if (stage == Stage::fit) {
    partition_->forget_optimizer(rank);
    reduction_.emplace(replica(), *partition_,
                       reduction_options(options_, replica().plan().deepspeed));
  } else {
    reduction_.reset();
  }
}

// 2. One flat buffer, cut in equal parts that may cut tensors.
void DeepSpeedPartitioned::allocate(Rank& rank) {
  std::vector<size_t> trainable;
  for (size_t index = 0; index < replica().parameters().size(); ++index) {
    if (replica().parameters()[index].trainable) {
      trainable.push_back(index);
    }
  }
  if (options_.round_robin_gradients) {
    trainable = in_round_robin(trainable, rank.world_size());
  }
  const auto elements_of = [&](size_t index) {
    return replica().network().parameter(replica().parameters()[index].place).elements();
  };
  std::vector<int64_t> sizes;
  for (const size_t index : trainable) {
    sizes.push_back(elements_of(index));
  }
  constexpr int64_t part_multiple = 2;
  const ShardLayout layout = ShardLayout::flat(sizes, rank.world_size(), 1, part_multiple);
  const DType dtype = computing_plan().parameter_dtype;
  flat_ = rank.allocate(Purpose::parameter, dtype, layout.gathered_elements());
  std::vector<Slice> parameters(replica().parameters().size());
  for (size_t i = 0; i < trainable.size(); ++i) {
    parameters[trainable[i]] = flat_.part(layout.offset_of(i), sizes[i]);
  }
  for (size_t index = 0; index < parameters.size(); ++index) {
    if (parameters[index].buffer == no_buffer) {
      parameters[index] = rank.allocate(Purpose::parameter, dtype, elements_of(index));
    }
  }
  constexpr uint64_t variant = 0;  // rank 0's become everybody's
  replica().state().allocate_in(rank, parameters, variant);
  partition_.emplace(replica(), trainable, layout,
                     options_.offloads_optimizer ? host_device : DeviceId{0},
                     options_.offloads_optimizer);
  partition_->allocate(rank, rank.id(), variant);
  if (options_.offloads_optimizer) {
    allocate_for_offload(rank, sizes);
  }
}

// Two buffers of the largest parameter, through which gradients cross to the host and on to the
// partition: temp_grad_buffer_for_gpu_offload and temp_grad_buffer_for_cpu_offload, which every
// release has and never frees.
void DeepSpeedPartitioned::allocate_for_offload(Rank& rank, const std::vector<int64_t>& sizes) {
  if (sizes.empty()) {
    return;
  }
  for (const DeviceId device : {DeviceId{0}, host_device}) {
    rank.allocate(Purpose::communication, computing_plan().parameter_dtype, std::ranges::max(sizes),
                  device);
  }
}

Program DeepSpeedPartitioned::send_states(Rank& rank) {
  const SiteId site = site_id(deepspeed_sites::send_states);
  const Ticket ready = rank.event({compute_stream, {}, site});
  Ticket last{};
  for (const Slice& parameter : replica().parameter_values()) {
    last = rank.broadcast(world_group, parameter, 0, {communication_stream, {ready}, site});
  }
  co_await rank.settle(last);
}

// One iteration

// Under fp16 the loss is scaled, so that small gradients do not vanish.
StepOptions DeepSpeedPartitioned::for_backward(const StepOptions& options) {
  StepOptions scaled = options;
  if (computing_plan().parameter_dtype == DType::fp16) {
    scaled.loss_factor *= loss_scale_of(scaler_);
  }
  return scaled;
}

std::string DeepSpeedPartitioned::no_sync_refusal() const {
  return no_sync_refusal_of(options_.stage);
}

std::vector<KnownDifference> DeepSpeedPartitioned::known_differences() {
  std::vector<KnownDifference> known = skipped_steps(scaler_);
  if (skipped_ > 0) {
    known.push_back(skipped_without_scale(skipped_));
  }
  if (partition_) {
    partition_->add_differences(known);
  }
  add_statistics_kept_apart(replica(), plan().world_size, engine_sends_no_statistics, known);
  add_update_by_own_norms(plan(), known);
  return known;
}

// runtime/precision_config.py, which has the key from 0.17.1 on; its default became true with
// 0.19.3. In full precision nothing is checked (engine.py, _configure_zero_optimizer).
bool DeepSpeedPartitioned::checks_gradients() const {
  const DType dtype = computing_plan().parameter_dtype;
  constexpr Version first_with_key{0, 17, 1};
  constexpr Version first_that_checks{0, 19, 3};
  const Version& release = computing_plan().deepspeed;
  const bool by_default = release >= first_that_checks;
  return dtype == DType::fp16 || (dtype == DType::bf16 && release >= first_with_key &&
                                  options_.checks_bf16.value_or(by_default));
}

void DeepSpeedPartitioned::note_step_of_all(bool overflowed) {
  if (computing_plan().parameter_dtype == DType::fp16) {
    note_step(scaler_, overflowed);
  } else {
    skipped_ += overflowed ? 1 : 0;
  }
}

Program DeepSpeedPartitioned::share_overflow_flag(Rank& rank) {
  return share_flag(rank, site_id(share_overflow));
}

// stage_1_and_2.py, complete_grad_norm_calculation_for_cpu_offload.
void DeepSpeedPartitioned::require_gradients() {
  if (!options_.offloads_optimizer || options_.ignores_unused) {
    return;
  }
  for (const MasterPartition::Piece& piece : partition_->pieces()) {
    if (!partition_->has_gradient(piece)) {
      const ParameterPlace place = replica().parameters()[piece.parameter].place;
      throw ProgramException(
          site_id(share_norm),
          fmt::format("AssertionError: This assert indicates that your module has parameters that "
                      "were not used in producing loss (`{}`; `ignore_unused_parameters` of the "
                      "configuration is false)",
                      replica().network().parameter_name(place)));
    }
  }
}

Program DeepSpeedPartitioned::optimizer_step(Rank& rank, const UpdateOptions& options) {
  const bool checks = checks_gradients();
  MasterPartition::Step step;
  step.options = options_.with_clipping(options);
  step.loss_scale = computing_plan().parameter_dtype == DType::fp16 ? scaler_.scale() : 1;
  step.norm_site = site_id(share_norm);
  step.update_site = site_id(update);
  step.may_lack_gradients = options_.offloads_optimizer;  // their memory on the host is there
  if (checks) {
    co_await share_overflow_flag(rank);
  } else {
    require_gradients();
  }
  partition_->begin_step(rank, step);
  if (checks) {
    // 3. All ranks step, or none: a gradient that is not finite anywhere makes the norm infinite.
    const bool is_finite = co_await partition_->is_finite(rank);
    note_step_of_all(!is_finite);
    if (!is_finite) {
      partition_->end_step(rank);
      transfers().end_step();
      co_return;
    }
    require_gradients();
  }
  partition_->update(rank, step);  // 4. the own part
  const SiteId site = site_id(gather_parameters);
  const Slice own = flat_.part(rank.id() * partition_->layout().shard_elements(),
                               partition_->layout().shard_elements());
  partition_->write_back(rank, partition_->values(), own, DeviceId{0}, site);
  const Ticket written = rank.event({compute_stream, {}, site});
  const Ticket gathered =
      rank.all_gather(world_group, own, flat_, {communication_stream, {written}, site});  // 5.
  rank.event({compute_stream, {gathered}, site});
  transfers().add(parameters_gathered, own.bytes());
  transfers().end_step();
}

std::vector<HeldParameter> DeepSpeedPartitioned::held_parameters() {
  std::vector<HeldParameter> held = partition_->held_parameters();
  for (size_t index = 0; index < replica().parameters().size(); ++index) {
    const Replica::Parameter& parameter = replica().parameters()[index];
    if (!parameter.trainable) {
      held.push_back({index, 0, parameter.tensor.value});
    }
  }
  std::sort(held.begin(), held.end(), [](const HeldParameter& a, const HeldParameter& b) {
    return a.parameter < b.parameter;
  });
  return held;
}

// The fp32 partition without its padding, and the state beside it with it.
Task<WrittenBytes> DeepSpeedPartitioned::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                         SiteId site) {
  EngineCheckpoint saved;
  saved.barrier_is_all_reduce = plan().barrier_is_all_reduce;
  saved.compares_tags = options_.compares_tags;
  const ModelBytes all = model_bytes(replica(), computing_plan());
  const Bytes left_out = options_.saves_frozen ? Bytes{} : all.frozen;
  saved.model = rank.id() == 0 ? all.weights - left_out : Bytes{};
  saved.partition = Bytes(size_of(DType::fp32)) * partition_->layout().shard_elements() *
                    state_tensors(plan().optimizers.front());
  for (const MasterPartition::Piece& piece : partition_->pieces()) {
    saved.partition += piece.tensor.value.bytes();
  }
  const Bytes written = co_await save_engine_checkpoint(rank, saved, request, site);
  co_await framework_barrier(rank, world_group, plan().barrier_is_all_reduce, site);
  co_return written;
}

}  // namespace lockstep
