#include "model/strategy/megatron/megatron_pipeline.hpp"

#include <numeric>
#include <utility>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/scaled_step.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"
#include "model/strategy/megatron/megatron_sites.hpp"
#include "model/strategy/megatron/megatron_steps.hpp"
#include "model/strategy/tensor/tensor_parallel.hpp"

namespace lockstep {

namespace {
constexpr std::string_view megatron_gradients_reduced = "gradients_reduced";
constexpr std::string_view megatron_parameters_gathered = "parameters_gathered";
constexpr std::string_view megatron_shared_reduced = "shared_gradients_reduced";

// MegatronMixedPrecision of NeMo: fp16_initial_loss_scale and its relatives
// (megatron/core/optimizer/grad_scaler.py, DynamicGradScaler).
constexpr LossScale::Options megatron_loss_scale{
    .initial = 4294967296, .growth_interval = 1000, .hysteresis = 2, .smallest = 1};
}  // namespace

MegatronPipeline::MegatronPipeline(const TrainingPlan& plan, MegatronPlan megatron)
    : Pipeline(plan, in_megatron_types(plan), std::move(megatron.pipeline)),
      megatron_(megatron.options) {
  micro_batch_size_ = megatron_.micro_batch_size;
  if (computing_plan_.activation_dtype == DType::fp16) {
    loss_scale_.emplace(megatron_loss_scale);
  }
  context_.ranks = megatron.context_ranks;
  experts_.parallel.ranks = megatron.experts.ranks;
  experts_.tensor.ranks = megatron.experts.tensor_ranks;
}

// Construction

Program MegatronPipeline::construct(Rank& rank) {
  co_await make_groups(rank);
  hold_stages();
  replica_.state().share_positions(context_);
  replica_.state().share_experts(experts_);
  make_buffers();
  if (megatron_.use_distributed_optimizer) {
    replica_.state().allocate_in(rank, buffers_->allocate_parameters(rank));
  } else {
    replica_.allocate(rank);  // all ranks have drawn the same model (seed_everything)
  }
  allocate_losses(rank);
}

Neighbourhoods MegatronPipeline::neighbourhoods_of_ranks(const RanksOfRun& run) {
  Neighbourhoods neighbourhoods = Pipeline::neighbourhoods_of_ranks(run);
  const int32_t tensor_ranks = pipeline_.mesh.tensor_ranks;
  const int32_t replicas =
      std::lcm(tensor_ranks * context_.ranks, experts_.parallel.ranks * experts_.tensor.ranks) /
      tensor_ranks;
  if (experts_.parallel.ranks > 1) {
    neighbourhoods.columns.clear();  // tokens may go to an expert of another column
  }
  for (uint32_t& each : neighbourhoods.of_rank) {
    each /= static_cast<uint32_t>(replicas);
  }
  return neighbourhoods;
}

// Between the tensor ranks and the replicas.
Program MegatronPipeline::make_context_groups(Rank& rank) {
  const int32_t tensor_ranks = pipeline_.mesh.tensor_ranks;
  if (context_.ranks > 1) {
    context_.group = co_await make_dimension(rank, context_.ranks, tensor_ranks);
    context_.on = stream(queue::first_group + 2);
    context_.index = place_.replica % context_.ranks;
    context_.step = tensor_ranks;
    context_.first_rank = rank.id() - context_.index * tensor_ranks;
  }
}

// Those of a replica.
Program MegatronPipeline::make_model_groups(Rank& rank) {
  const PipelineMesh& mesh = pipeline_.mesh;
  for (int32_t replica = 0; replica < mesh.replicas; ++replica) {
    std::vector<int64_t> members;
    for (int32_t stage = 0; stage < shape().ranks; ++stage) {
      for (int32_t tensor = 0; tensor < mesh.tensor_ranks; ++tensor) {
        members.push_back((stage * mesh.replicas + replica) * mesh.tensor_ranks + tensor);
      }
    }
    const Rank::NewGroup made = rank.new_group(
        world_group, members, {communication_stream, {}, site_id(megatron_sites::make_groups)});
    co_await rank.settle(made.ready);
    model_group_ = replica == place_.replica ? made.group : model_group_;
  }
}

// Ranks with different experts, those that compute one together, both, and those with the same.
Program MegatronPipeline::make_expert_groups(Rank& rank) {
  TensorRanks& parallel = experts_.parallel;
  TensorRanks& tensor = experts_.tensor;
  const int32_t all = parallel.ranks * tensor.ranks;
  if (all == 1) {
    co_return;
  }
  const int32_t in_stage = rank.id() % pipeline_.mesh.columns();
  tensor.index = in_stage % tensor.ranks;
  tensor.first_rank = rank.id() - tensor.index;
  tensor.on = stream(queue::first_group + 4);
  parallel.index = in_stage / tensor.ranks % parallel.ranks;
  parallel.step = tensor.ranks;
  parallel.first_rank = rank.id() - parallel.index * tensor.ranks;
  parallel.on = stream(queue::first_group + 3);
  experts_.counting = {.on = stream(queue::first_group + 5), .ranks = all};
  expert_data_.ranks = pipeline_.mesh.columns() / all;
  expert_data_.index = in_stage / all;
  expert_data_.group.on = stream(queue::first_group + 6);
  if (parallel.ranks > 1) {
    parallel.group = co_await make_dimension(rank, parallel.ranks, tensor.ranks);
  }
  if (tensor.ranks > 1) {
    tensor.group = co_await make_dimension(rank, tensor.ranks, 1);
  }
  experts_.counting.group = co_await make_dimension(rank, all, 1);
  if (parallel.ranks > 1 && expert_data_.ranks > 1) {
    expert_data_.group.group = co_await make_dimension(rank, expert_data_.ranks, all);
    expert_data_.group.first_rank = rank.id() - expert_data_.index * all;
  }
}

// initialize_model_parallel: replicas, those that divide positions, ranks of one replica, tensor
// ranks, pipelines, and those of experts. Every rank makes all groups of more than one rank.
Program MegatronPipeline::make_groups(Rank& rank) {
  const PipelineMesh& mesh = pipeline_.mesh;
  co_await make_replica_groups(rank);
  co_await make_context_groups(rank);
  if (shape().ranks * mesh.tensor_ranks > 1) {
    co_await make_model_groups(rank);
  }
  co_await make_tensor_groups(rank);
  if (shape().ranks > 1) {
    group_ = co_await make_dimension(rank, shape().ranks, mesh.columns());
  }
  co_await make_expert_groups(rank);
}

void MegatronPipeline::make_buffers() {
  std::vector<ModelChunk> chunks;
  for (const int32_t stage : own_stages_) {
    chunks.push_back({layers_of(stage).first, layers_of(stage).end});
  }
  MegatronBuffers::Ranks ranks{{replicas_, pipeline_.mesh.replicas, place_.replica}};
  if (experts_.parallel.ranks > 1) {
    ranks.experts = expert_data_;
  }
  buffers_.emplace(replica_, megatron_, chunks, ranks, place_.in_pipeline == 0);
}

Program MegatronPipeline::begin_fit(Rank& rank) {
  buffers_->allocate_gradients(rank);
  if (optimizer_) {
    optimizer_->forget_state(rank);
  } else {
    optimizer_.emplace(rank, replica_, *buffers_);
  }
  co_return;
}

std::vector<PipelineStep> MegatronPipeline::training_steps(int32_t in_pipeline) const {
  return megatron_steps(shape(), in_pipeline);
}

// One step

Program MegatronPipeline::before_micro_batches(Rank& rank, const std::vector<Batch>&,
                                               const StepOptions& options) {
  if (options.training) {
    buffers_->begin_step(rank);
  } else {
    buffers_->gather_all(rank);
  }
  co_return;
}

void MegatronPipeline::before_layer(Rank& rank, size_t layer) {
  buffers_->gather_before(rank, layer);
}

void MegatronPipeline::gradients_ready(Rank& rank, int32_t stage, size_t layer, Ticket done) {
  if (is_in_last_backward(stage)) {
    buffers_->gradients_ready(rank, layer, done);
  }
}

// forward_step divides the loss of each micro-batch.
StepOptions MegatronPipeline::as_computed(const StepOptions& options) const {
  StepOptions computed = options;
  computed.loss_factor = 1.0 / shape().micro_batches;
  if (loss_scale_) {
    computed.loss_factor *= loss_scale_->scale();  // grad_scale_func, on the last stage
  }
  return computed;
}

// finalize_model_grads
void MegatronPipeline::finish_gradients(Rank& rank, const StepOptions&) {
  buffers_->finish(rank);
  for (const Bytes bytes : buffers_->take_reduced_bytes()) {
    transfers_.add(megatron_gradients_reduced, bytes);
  }
  reduce_norm_gradients(rank);
  for (const Bytes bytes : shared_.add_up(rank, replica_, nullptr, 1)) {
    transfers_.add(megatron_shared_reduced, bytes);
  }
}

// _allreduce_layernorm_grads: all of them in one call.
void MegatronPipeline::reduce_norm_gradients(Rank& rank) {
  std::vector<Slice> gradients;
  int64_t elements = 0;
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    if (replica_.holds(index) && has_partial_gradient(replica_, index)) {
      gradients.push_back(replica_.parameters()[index].tensor.gradient);
      elements += gradients.back().elements;
    }
  }
  if (gradients.empty() || tensor_.ranks == 1) {
    return;
  }
  const SiteId site = site_id(megatron_sites::reduce_norms);
  const Slice flat = rank.allocate(Purpose::communication, gradients.front().dtype, elements);
  std::vector<Slice> parts;
  int64_t begin = 0;
  for (const Slice& gradient : gradients) {
    parts.push_back(flat.part(begin, gradient.elements));
    begin += gradient.elements;
  }
  const Ticket packed =
      elementwise(rank, Kernel::copy, gradients, parts, 0, {replica_.compute(), {}, site});
  const Ticket summed =
      rank.all_reduce(tensor_.group, flat, Reduction::sum, {tensor_.on, {packed}, site});
  elementwise(rank, Kernel::copy, parts, gradients, 0, {replica_.compute(), {summed}, site});
  rank.release(flat);
}

// The mean over the replicas, on the ranks that have a loss.
void MegatronPipeline::average_loss(Rank& rank) {
  if (pipeline_.mesh.replicas == 1) {
    return;
  }
  const SiteId site = site_id(megatron_sites::average_loss);
  const Ticket scaled = elementwise(rank, Kernel::scale, {loss_}, {loss_},
                                    1.0 / pipeline_.mesh.replicas, {replica_.compute(), {}, site});
  const Ticket summed =
      rank.all_reduce(replicas_.group, loss_, Reduction::sum, {replicas_.on, {scaled}, site});
  loss_ready_ = rank.event({replica_.compute(), {summed}, site});
}

/// Each element counts once among the ranks of the norm's group.
bool MegatronPipeline::counts(size_t parameter) const {
  const bool is_first = writes_parameter(parameter) || experts_.parallel.ranks == 1 ||
                        megatron_.use_distributed_optimizer || !plan().numerics;
  return counts_in_norm(replica_, tensor_, parameter) && !shared_.is_copy(parameter) && is_first;
}

// Experts are on other ranks than the rest of a replica: their norm is over all ranks.
Program MegatronPipeline::optimizer_step(Rank& rank, const UpdateOptions& options) {
  MegatronOptimizer::Step step{.options = options};
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    step.counts.push_back(counts(index));
  }
  const bool is_divided =
      (megatron_.use_distributed_optimizer || experts_.parallel.ranks > 1) && rank.world_size() > 1;
  step.norm_group = is_divided ? std::optional(world_group) : model_group_;
  step.loss_scale = loss_scale_ ? &*loss_scale_ : nullptr;
  const bool has_stepped = co_await optimizer_->step(rank, step);
  if (has_stepped || megatron_.overlap_param_gather) {  // the next forward gathers in any case
    buffers_->gather(rank);
  }
  for (const Bytes bytes : buffers_->take_gathered_bytes()) {
    transfers_.add(megatron_parameters_gathered, bytes);
  }
  transfers_.end_step();
}

std::vector<KnownDifference> MegatronPipeline::known_differences() {
  std::vector<KnownDifference> known = Pipeline::known_differences();
  if (loss_scale_) {
    for (KnownDifference& skipped :
         skipped_steps_of(*loss_scale_, "use bf16-mixed, or a smaller fp16_initial_loss_scale")) {
      known.push_back(std::move(skipped));
    }
  }
  return known;
}

Program MegatronPipeline::zero_gradients(Rank&, size_t, bool) { co_return; }

// What the optimizer updates may be copies in fp32, or a part of them.
std::vector<HeldParameter> MegatronPipeline::held_parameters() {
  if (!optimizer_ || !optimizer_->holds_more()) {
    return Pipeline::held_parameters();
  }
  std::vector<HeldParameter> held;
  for (const HeldParameter& piece : optimizer_->held_parameters()) {
    for (const HeldParameter& part : in_whole(replica_, tensor_, piece)) {
      held.push_back(part);
    }
  }
  for (const HeldParameter& part : Pipeline::held_parameters()) {
    if (!replica_.parameters()[part.parameter].trainable) {
      held.push_back(part);
    }
  }
  return held;
}

bool MegatronPipeline::writes_parameter(size_t parameter) const {
  return buffers_->is_expert(parameter) ? expert_data_.index == 0
                                        : Pipeline::writes_parameter(parameter);
}

// Replicas without a distributed optimizer hold the same state, of which each writes a share.
Bytes MegatronPipeline::bytes_of_own_state() const {
  if (!optimizer_) {
    return {};
  }
  std::vector<int32_t> holders(replica_.parameters().size(), 1);
  for (size_t index = 0; !megatron_.use_distributed_optimizer && index < holders.size(); ++index) {
    holders[index] = buffers_->is_expert(index) ? expert_data_.ranks : pipeline_.mesh.replicas;
  }
  return optimizer_->state_bytes(holders);
}

}  // namespace lockstep
