// What a pipeline does where Megatron-LM trains: its groups, its buffers of gradients, its
// optimizer.
#include <algorithm>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"
#include "model/strategy/megatron/megatron_sites.hpp"
#include "model/strategy/pipeline/pipeline.hpp"
#include "model/strategy/tensor/tensor_mesh.hpp"

namespace lockstep {

namespace {
constexpr std::string_view megatron_gradients_reduced = "gradients_reduced";
constexpr std::string_view megatron_parameters_gathered = "parameters_gathered";
constexpr std::string_view megatron_shared_reduced = "shared_gradients_reduced";
}  // namespace

// initialize_model_parallel: replicas, ranks of one replica, tensor ranks, pipelines. Every rank
// makes all groups of more than one rank.
Program Pipeline::make_megatron_groups(Rank& rank) {
  const PipelineMesh& mesh = pipeline_.mesh;
  if (mesh.replicas > 1) {
    replicas_.group = co_await make_dimension(rank, mesh.replicas, mesh.tensor_ranks);
    replicas_.first_rank = place_.in_pipeline * mesh.columns() + place_.in_tensor;
    replicas_.on = stream(queue::first_group);
  }
  if (shape().ranks * mesh.tensor_ranks > 1) {
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
  if (mesh.tensor_ranks > 1) {
    tensor_.group = co_await make_dimension(rank, mesh.tensor_ranks, 1);
    tensor_.on = stream(queue::first_group + 1);
  }
  if (shape().ranks > 1) {
    group_ = co_await make_dimension(rank, shape().ranks, mesh.columns());
  }
}

void Pipeline::make_buffers() {
  std::vector<ModelChunk> chunks;
  for (const int32_t stage : own_stages_) {
    chunks.push_back({layers_of(stage).first, layers_of(stage).end});
  }
  const DataRanks data{replicas_, pipeline_.mesh.replicas, place_.replica};
  buffers_.emplace(replica_, *pipeline_.megatron, chunks, data, place_.in_pipeline == 0);
}

void Pipeline::begin_megatron_fit(Rank& rank) {
  buffers_->allocate_gradients(rank);
  if (optimizer_) {
    optimizer_->forget_state(rank);
  } else {
    optimizer_.emplace(rank, replica_, *buffers_);
  }
}

// forward_step divides the loss of each micro-batch.
StepOptions Pipeline::as_computed(const StepOptions& options) const {
  StepOptions computed = options;
  if (is_megatron()) {
    computed.loss_factor = 1.0 / shape().micro_batches;
  }
  return computed;
}

// finalize_model_grads
void Pipeline::finalize_gradients(Rank& rank) {
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
void Pipeline::reduce_norm_gradients(Rank& rank) {
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
void Pipeline::average_loss(Rank& rank) {
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

void Pipeline::megatron_step(Rank& rank, const UpdateOptions& options) {
  MegatronOptimizer::Step step{.options = options};
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    step.counts.push_back(counts_in_norm(replica_, tensor_, index) && !shared_.is_copy(index));
  }
  const bool is_divided = pipeline_.megatron->use_distributed_optimizer && rank.world_size() > 1;
  step.norm_group = is_divided ? std::optional(world_group) : model_group_;
  optimizer_->step(rank, step);
  buffers_->gather(rank);
  for (const Bytes bytes : buffers_->take_gathered_bytes()) {
    transfers_.add(megatron_parameters_gathered, bytes);
  }
}

}  // namespace lockstep
