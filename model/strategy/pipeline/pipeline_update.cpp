// The end of a pipeline's step: what all micro-batches together have given, and the update.
#include <utility>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/pipeline/pipeline.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"
#include "model/strategy/tensor/tensor_parallel.hpp"

namespace lockstep {

namespace {
constexpr std::string_view shared_gradients_reduced = "shared_gradients_reduced";
}  // namespace

Program Pipeline::finish_step(Rank& rank, const StepOptions& options) {
  if (is_megatron() && options.training) {
    finalize_gradients(rank);
  } else if (options.training && options.synchronise) {
    const ReducingGroup* replicas = reducers_.empty() ? nullptr : &replicas_;
    for (const Bytes bytes : shared_.add_up(rank, replica_, replicas, pipeline_.mesh.replicas)) {
      transfers_.add(shared_gradients_reduced, bytes);
    }
  }
  if (options.training && pipeline_.scales_gradients && shape().micro_batches > 1 &&
      !is_megatron()) {
    scale_gradients(rank);
  }
  if (!options.training) {
    forget_passages(rank);
  }
  share_loss(rank);
  co_return;
}

// torch divides all that is there, what an earlier batch has left among it (stage.py, scale_grads).
void Pipeline::scale_gradients(Rank& rank) {
  std::vector<Slice> gradients;
  for (const Slice& gradient : replica_.gradients()) {
    if (gradient.buffer != no_buffer) {
      gradients.push_back(gradient);
    }
  }
  scales_twice_ = scales_twice_ || std::exchange(has_gradients_, true);
  if (!gradients.empty()) {
    elementwise(rank, Kernel::scale, gradients, gradients, 1.0 / shape().micro_batches, {},
                site_id(pipeline_sites::scale_gradients));
  }
}

void Pipeline::share_loss(Rank& rank) {
  const int32_t last = shape().rank_of(shape().stages() - 1);
  const SiteId site = site_id(pipeline_sites::send_loss);
  if (place_.in_pipeline == last) {
    KernelCall call;
    call.kernel = Kernel::average;
    call.reads = {&losses_, 1};
    call.writes = {&loss_, 1};
    call.memory_traffic = losses_.bytes();
    loss_ready_ =
        rank.compute(call, {replica_.compute(), {}, site_id(pipeline_sites::average_loss)});
    if (is_megatron()) {
      average_loss(rank);
    }
  } else {
    loss_ready_ = rank.event({replica_.compute(), {}, site});
  }
  if (pipeline_.loss_on_all_stages && shape().ranks > 1) {
    const Ticket sent = rank.broadcast(group_, loss_, place_.rank_in_world(last, pipeline_.mesh),
                                       {communication_stream, {loss_ready_}, site});
    loss_ready_ = rank.event({replica_.compute(), {sent}, site});
  }
}

// After an evaluation, where no backward does so.
void Pipeline::forget_passages(Rank& rank) {
  for (auto& [key, passage] : passages_) {
    replica_.drop_forward(rank, passage.forward);
    release_output(rank, passage);
  }
}

Program Pipeline::backward(Rank&, const StepOptions&) { co_return; }

Program Pipeline::optimizer_step(Rank& rank, const UpdateOptions& options) {
  if (is_megatron()) {
    megatron_step(rank, options);
    transfers_.end_step();
    co_return;
  }
  const bool by_norm = options.clipping.algorithm == GradientClipping::Algorithm::norm;
  if (by_norm && shares_weights_) {
    throw ProgramException(site_id(pipeline_sites::update),
                           "clipping by norm is not modelled where stages on several ranks share a "
                           "weight, which the norm would count twice; clip by value");
  }
  Replica::OwnedStep owned;
  std::vector<size_t> held;
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    owned.owns.push_back(replica_.holds(index));
    owned.counts.push_back(replica_.holds(index) && counts_in_norm(replica_, tensor_, index));
    if (replica_.holds(index)) {
      held.push_back(index);
    }
  }
  const bool is_cut = tensor_.ranks > 1;
  if (is_cut) {
    sum_partial_gradients(rank, replica_, tensor_, held, {});
  }
  if (by_norm && (shape().ranks > 1 || is_cut)) {
    owned.norm =
        SharedNorm{shape().ranks > 1 ? group_ : tensor_.group, site_id(pipeline_sites::share_norm)};
    if (is_cut && shape().ranks > 1) {
      owned.norm->across = tensor_.group;
    }
  }
  replica_.optimizer_step(rank, options, site_id(pipeline_sites::update), &owned);
  transfers_.end_step();
  co_return;
}

Program Pipeline::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  if (is_megatron()) {
    co_return;  // training_step does so, whatever Lightning counts (MegatronStrategy.training_step)
  }
  replica_.zero_gradients(rank, optimizer, set_to_none);
  has_gradients_ = false;
  for (auto& [stage, reducer] : reducers_) {
    reducer.gradients_forgotten(rank);
  }
  co_return;
}

std::vector<HeldParameter> Pipeline::held_parameters() {
  std::vector<HeldParameter> held;
  const bool has_more = optimizer_ && optimizer_->holds_more();
  for (const HeldParameter& piece :
       has_more ? optimizer_->held_parameters() : std::vector<HeldParameter>()) {
    for (const HeldParameter& part : in_whole(replica_, tensor_, piece)) {
      held.push_back(part);
    }
  }
  const std::vector<Slice> values = replica_.parameter_values();
  for (size_t index = 0; index < values.size(); ++index) {
    if (!replica_.holds(index) || (has_more && replica_.parameters()[index].trainable)) {
      continue;
    }
    for (const HeldParameter& part : in_whole(replica_, tensor_, {index, 0, values[index]})) {
      held.push_back(part);
    }
  }
  return held;
}

std::vector<KnownDifference> Pipeline::known_differences() {
  std::vector<KnownDifference> known;
  if (scales_twice_) {
    known.push_back(
        {"scale_grads divides all gradients that are there by n_microbatches after every batch, "
         "those of the batches accumulated before among them",
         "set scale_grads: false and divide the loss, or raise n_microbatches in place of "
         "accumulate_grad_batches"});
  }
  if (!pipeline_.scales_gradients && shape().micro_batches > 1 && !is_megatron()) {
    known.push_back(
        {"without scale_grads gradients are the sum over the micro-batches, not the "
         "mean",
         "set scale_grads: true, or divide the loss or the learning rate"});
  }
  return known;
}

// Every stage writes its own file; pipelines side by side hold the same.
Task<Bytes> Pipeline::save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) {
  Bytes bytes{};
  if (optimizer_ && !request.weights_only) {
    // Replicas without a distributed optimizer hold the same state, of which each writes a share.
    const bool is_same = !pipeline_.megatron->use_distributed_optimizer;
    bytes += optimizer_->state_bytes() / (is_same ? pipeline_.mesh.replicas : 1);
  }
  if (place_.replica == 0) {
    for (size_t index = 0; index < replica_.parameters().size(); ++index) {
      const OptimizedTensor& tensor = replica_.parameters()[index].tensor;
      bytes += tensor.value.bytes();
      for (const Slice& state : tensor.state) {
        bytes += request.weights_only ? Bytes{} : state.bytes();
      }
    }
  }
  const int32_t writers =
      std::min(rank.place().local_world_size, shape().ranks * pipeline_.mesh.tensor_ranks);
  co_await write_file(rank, bytes, request, writers, site);
  co_return bytes;
}

}  // namespace lockstep
