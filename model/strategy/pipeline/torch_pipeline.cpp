#include "model/strategy/pipeline/torch_pipeline.hpp"

#include <utility>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"
#include "model/strategy/tensor/tensor_mesh.hpp"

namespace lockstep {

namespace {
constexpr std::string_view shared_gradients_reduced = "shared_gradients_reduced";
}  // namespace

Program TorchPipeline::before_batch(Rank& rank, bool training) {
  for (auto& [stage, reducer] : reducers_) {
    co_await reducer.settle(rank);
  }
  is_training_ = training;
}

// DistributedDataParallel does so in the first forward behind a backward.
Program TorchPipeline::before_action(Rank& rank, const PipelineAction& action) {
  const auto found = reducers_.find(action.stage);
  if (is_training_ && action.work == PipelineWork::forward && found != reducers_.end()) {
    co_await found->second.rebuild_buckets(rank);  // once
  }
}

Program TorchPipeline::before_micro_batches(Rank& rank, const std::vector<Batch>& batches,
                                            const StepOptions& options) {
  if (!std::exchange(has_met_, true)) {
    co_await meet_neighbours(rank);
    co_await infer_shapes(rank, batches.front(), options);
  }
}

// DistributedDataParallel averages the gradients of all micro-batches in the last backward.
void TorchPipeline::begin_exchange(const PipelineAction& action, const StepOptions& options) {
  const auto found = reducers_.find(action.stage);
  if (found == reducers_.end() || !options.synchronise || !is_in_last_backward(action.stage)) {
    return;
  }
  reducing_ = &found->second;
  reducing_->prepare_for_backward();
  reducing_->divide_by(pipeline_.mesh.replicas);
}

void TorchPipeline::gradients_ready(Rank& rank, int32_t, size_t layer, Ticket done) {
  if (reducing_ != nullptr) {
    reducing_->gradients_ready(rank, layer, done);
  }
}

Program TorchPipeline::end_exchange(Rank& rank) {
  Reducer* const reducer = std::exchange(reducing_, nullptr);
  if (reducer == nullptr) {
    co_return;
  }
  co_await reducer->finish(rank);
  for (const Bytes bytes : reducer->take_reduced_bytes()) {
    transfers_.add(gradients_reduced, bytes);
  }
}

void TorchPipeline::finish_gradients(Rank& rank, const StepOptions& options) {
  if (options.synchronise) {
    const ReducingGroup* replicas = reducers_.empty() ? nullptr : &replicas_;
    for (const Bytes bytes : shared_.add_up(rank, replica_, replicas, pipeline_.mesh.replicas)) {
      transfers_.add(shared_gradients_reduced, bytes);
    }
  }
  if (scales()) {
    scale_gradients(rank);
  }
}

// torch divides all that is there, what an earlier batch has left among it (stage.py, scale_grads).
void TorchPipeline::scale_gradients(Rank& rank) {
  std::vector<Slice> gradients;
  for (const Slice& gradient : replica_.state().gradients()) {
    if (gradient.buffer != no_buffer) {
      gradients.push_back(gradient);
    }
  }
  note_scaling();
  if (!gradients.empty()) {
    elementwise(rank, Kernel::scale, gradients, gradients, 1.0 / shape().micro_batches, {},
                site_id(pipeline_sites::scale_gradients));
  }
}

Program TorchPipeline::optimizer_step(Rank& rank, const UpdateOptions& options) {
  const bool by_norm = options.clipping.algorithm == GradientClipping::Algorithm::norm;
  OwnedStep owned;
  std::vector<size_t> held;
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    owned.owns.push_back(replica_.holds(index));
    owned.counts.push_back(replica_.holds(index) && !shared_.is_copy(index) &&
                           counts_in_norm(replica_, tensor_, index));
    if (replica_.holds(index)) {
      held.push_back(index);
    }
  }
  const bool is_cut = tensor_.ranks > 1;
  if (is_cut) {
    sum_partial_gradients(rank, replica_, tensor_, held, {});
  }
  if (by_norm && (shape().ranks > 1 || is_cut)) {
    owned.norm = SharedNorm{{}, site_id(pipeline_sites::share_norm)};
    if (shape().ranks > 1) {
      owned.norm->sums.push_back({group_});
    }
    if (is_cut) {
      owned.norm->sums.push_back({tensor_.group});
    }
  }
  replica_.optimizer_step(rank, options, site_id(pipeline_sites::update), &owned);
  transfers_.end_step();
  co_return;
}

Program TorchPipeline::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  replica_.zero_gradients(rank, optimizer, set_to_none);
  has_gradients_ = false;
  for (auto& [stage, reducer] : reducers_) {
    reducer.gradients_forgotten(rank);
  }
  co_return;
}

std::vector<KnownDifference> TorchPipeline::known_differences() {
  std::vector<KnownDifference> known;
  if (scales_twice_) {
    known.push_back(
        {"scale_grads divides all gradients that are there by n_microbatches after every batch, "
         "those of the batches accumulated before among them",
         "set scale_grads: false and divide the loss, or raise n_microbatches in place of "
         "accumulate_grad_batches"});
  }
  if (!pipeline_.scales_gradients && shape().micro_batches > 1) {
    known.push_back(
        {"without scale_grads gradients are the sum over the micro-batches, not the "
         "mean",
         plan().pipelines_scale_gradients
             ? "set scale_grads: true, or divide the loss or the learning rate"
             : "divide the loss or the learning rate, or use torch 2.7 or newer, which scales "
               "them"});
  }
  return known;
}

}  // namespace lockstep
