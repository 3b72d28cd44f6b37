// The end of a pipeline's step: what all micro-batches together have given, and the update.
#include <utility>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/pipeline/pipeline.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"
#include "model/strategy/tensor/tensor_parallel.hpp"

namespace lockstep {

void Pipeline::finish_step(Rank& rank, const StepOptions& options) {
  if (options.training) {
    finish_gradients(rank, options);
  } else {
    forget_passages(rank);
  }
  share_loss(rank, options.training ? pipeline_.training_loss_on_all_stages
                                    : pipeline_.loss_on_all_stages);
}

void Pipeline::share_loss(Rank& rank, bool with_all_stages) {
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
    average_loss(rank);
  } else if (!with_all_stages && std::exchange(knows_loss_, false)) {
    loss_ready_ = elementwise(rank, Kernel::fill, {}, {loss_}, -1, {replica_.compute(), {}, site});
  } else {
    loss_ready_ = rank.event({replica_.compute(), {}, site});
  }
  if (with_all_stages && shape().ranks > 1) {
    knows_loss_ = true;
    const Ticket sent = rank.broadcast(group_, loss_, place_.rank_in_world(last, pipeline_.mesh),
                                       {communication_stream, {loss_ready_}, site});
    loss_ready_ = rank.event({replica_.compute(), {sent}, site});
  }
}

std::optional<MissingLoss> Pipeline::missing_loss() const {
  const bool has_own = place_.in_pipeline == shape().rank_of(shape().stages() - 1);
  if (has_own || (pipeline_.loss_on_all_stages && pipeline_.training_loss_on_all_stages)) {
    return std::nullopt;
  }
  return MissingLoss{!pipeline_.training_loss_on_all_stages, !pipeline_.loss_on_all_stages,
                     "only the last stage of the pipeline computes the loss; other ranks have -1",
                     "let the last stage send it to the others: loss_on_all_stages: true"};
}

// After an evaluation, where no backward does so.
void Pipeline::forget_passages(Rank& rank) {
  for (auto& [key, passage] : passages_) {
    replica_.forwards().drop(rank, passage.forward);
    release_output(rank, passage, plan().numerics);
  }
}

Program Pipeline::backward(Rank&, const StepOptions&) { co_return; }

std::vector<HeldParameter> Pipeline::held_parameters() {
  std::vector<HeldParameter> held;
  const std::vector<Slice> values = replica_.parameter_values();
  for (size_t index = 0; index < values.size(); ++index) {
    for (const HeldParameter& part : replica_.holds(index)
                                         ? in_whole(replica_, tensor_, {index, 0, values[index]})
                                         : std::vector<HeldParameter>()) {
      held.push_back(part);
    }
  }
  return held;
}

// Every stage writes its own file; pipelines side by side hold the same.
Task<WrittenBytes> Pipeline::save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) {
  Bytes bytes = request.weights_only ? Bytes{} : bytes_of_own_state();
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    if (writes_parameter(index)) {
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
