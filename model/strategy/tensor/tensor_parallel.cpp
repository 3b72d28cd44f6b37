#include "model/strategy/tensor/tensor_parallel.hpp"

#include <algorithm>

#include "model/strategy/local_model/tensor_sites.hpp"

namespace lockstep {

TensorParallel::TensorParallel(const TrainingPlan& plan)
    : DistributedStrategy(plan), replica_(plan, DeviceId{0}) {}

// Every rank draws the same model (seed_everything) and keeps its parts.
Program TensorParallel::setup(Rank& rank, Stage stage) {
  if (!std::exchange(is_set_up_, true)) {
    mesh_ = co_await make_tensor_mesh(rank, rank.world_size());
    replica_.share_layers(mesh_.tensor);
    replica_.allocate(rank);
    co_await distribute_parameters(rank, replica_, mesh_);
  }
  if (stage == Stage::fit) {
    replica_.forget_optimizer(rank);
  }
}

Program TensorParallel::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  co_await rank.settle(loss_ready_);
  loss_ready_ = replica_.forward(rank, batch, options);
}

Program TensorParallel::backward(Rank& rank, const StepOptions& options) {
  const int64_t last = replica_.last_forward();
  for (const BackwardPass& pass : replica_.take_passes(options)) {
    replica_.turn_to(pass.forward);
    replica_.backward_of_loss(rank, pass.applied_to(options));
    for (const size_t layer : replica_.layers_last_to_first()) {
      replica_.backward(rank, layer);
    }
    replica_.forget_forward(rank);
  }
  replica_.return_to(last);
  co_return;
}

// A gradient of terms is summed by the first operation that needs all of it, which is here: DTensor
// keeps it as Partial until then.
Program TensorParallel::optimizer_step(Rank& rank, const UpdateOptions& options) {
  std::vector<size_t> all(replica_.parameters().size());
  Replica::OwnedStep owned;
  for (size_t index = 0; index < all.size(); ++index) {
    all[index] = index;
    owned.owns.push_back(true);
    owned.counts.push_back(counts_in_norm(replica_, mesh_.tensor, index));
  }
  sum_partial_gradients(rank, replica_, mesh_.tensor, all, {});
  if (options.clipping.algorithm == GradientClipping::Algorithm::norm && rank.world_size() > 1) {
    owned.norm = SharedNorm{mesh_.tensor.group, site_id(tensor_sites::share_norm)};
  }
  replica_.optimizer_step(rank, options, site_id(tensor_sites::update), &owned);
  co_return;
}

Program TensorParallel::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  replica_.zero_gradients(rank, optimizer, set_to_none);
  co_return;
}

std::vector<HeldParameter> TensorParallel::held_parameters() {
  std::vector<HeldParameter> held;
  const std::vector<Slice> values = replica_.parameter_values();
  for (size_t index = 0; index < values.size(); ++index) {
    for (const HeldParameter& part : in_whole(replica_, mesh_.tensor, {index, 0, values[index]})) {
      held.push_back(part);
    }
  }
  return held;
}

std::vector<HeldParameter> in_whole(const Replica& replica, const TensorRanks& ranks,
                                    const HeldParameter& held) {
  const ParameterPlace place = replica.parameters()[held.parameter].place;
  const std::optional<TensorCut>& cut = replica.network().parameter(place).cut;
  if (!cut || !replica.plan().numerics) {
    return {held};
  }
  std::vector<HeldParameter> parts;
  const int64_t end = held.first_element + held.value.elements;
  for (const TensorRun& run : cut->runs_of(ranks.index)) {
    const int64_t first = std::max(run.in_part, held.first_element);
    const int64_t last = std::min(run.in_part + run.elements, end);
    if (first < last) {
      parts.push_back({held.parameter, run.in_whole + first - run.in_part,
                       held.value.part(first - held.first_element, last - first)});
    }
  }
  return parts;
}

// torch.distributed.checkpoint: every rank its parts, and the first rank what all hold alike.
Task<Bytes> TensorParallel::save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) {
  co_await send_path(rank, request, site);
  Bytes bytes{};
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    if (!counts_in_norm(replica_, mesh_.tensor, index)) {
      continue;
    }
    const OptimizedTensor& tensor = replica_.parameters()[index].tensor;
    bytes += tensor.value.bytes();
    for (const Slice& state : tensor.state) {
      bytes += request.weights_only ? Bytes{} : state.bytes();
    }
  }
  co_await write_file(rank, bytes, request, rank.place().local_world_size, site);
  co_return bytes;
}

}  // namespace lockstep
