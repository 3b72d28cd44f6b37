#include "model/strategy/tensor/tensor_parallel.hpp"

#include <algorithm>
#include <utility>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/forward_of.hpp"
#include "model/strategy/local_model/gradient_clipping.hpp"
#include "model/strategy/local_model/plain_backward.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"

namespace lockstep {

TensorParallel::TensorParallel(const TrainingPlan& plan)
    : DistributedStrategy(plan), replica_(plan, DeviceId{0}) {}

// Every rank draws the same model (seed_everything) and keeps its parts.
Program TensorParallel::setup(Rank& rank, Stage stage) {
  if (!std::exchange(is_set_up_, true)) {
    mesh_ = co_await make_tensor_mesh(rank, rank.world_size());
    replica_.state().share_layers(mesh_.tensor);
    replica_.allocate(rank);
    co_await distribute_parameters(rank, replica_, mesh_);
  }
  if (stage == Stage::fit) {
    replica_.forget_optimizer(rank);
  }
}

Program TensorParallel::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  co_await rank.settle(loss_ready_);
  loss_ready_ = co_await forward_of(rank, replica_, batch, options);
}

Program TensorParallel::backward(Rank& rank, const StepOptions& options) {
  plain_backward(rank, replica_, options);
  co_return;
}

/// What a DTensor that is Partial becomes for an operation that needs all of it: another tensor.
Slice TensorParallel::sum_of_terms(Rank& rank, const Slice& gradient, SiteId site) {
  const Slice sum = rank.allocate(Purpose::communication, gradient.dtype, gradient.elements);
  elementwise(rank, Kernel::copy, {gradient}, {sum}, 0, {replica_.compute(), {}, site});
  const Ticket ready = rank.event({replica_.compute(), {}, site});
  const Ticket done =
      rank.all_reduce(mesh_.tensor.group, sum, Reduction::sum, {mesh_.tensor.on, {ready}, site});
  rank.event({replica_.compute(), {done}, site});
  return sum;
}

// torch/nn/utils/clip_grad.py. A gradient of terms is summed for its norm, and once more to be
// multiplied in place, which multiplies that sum: the terms stay as they were (DECISIONS 440).
void TensorParallel::clip_by_norm(Rank& rank, const UpdateOptions& options) {
  const SiteId site = site_id(tensor_sites::share_norm);
  const OptimizerPlan& optimizer = replica_.plan().optimizers[options.optimizer];
  std::vector<size_t> given;
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    const Replica::Parameter& parameter = replica_.parameters()[index];
    if (parameter.trainable && parameter.tensor.gradient.buffer != no_buffer &&
        optimizer.holds(parameter.place.layer)) {
      given.push_back(index);
    }
  }
  const PlanCoverage coverage = plan_coverage(replica_, given);
  if (coverage == PlanCoverage::some) {
    throw ProgramException(site,
                           "RuntimeError: aten._foreach_norm.Scalar: got mixed torch.Tensor and "
                           "DTensor: parameters outside of parallelize_plan cannot be clipped "
                           "together with those in it; put every trained module into the plan, "
                           "or leave gradient_clip_val out");
  }
  std::vector<Slice> gradients;
  std::vector<Slice> counted;
  std::vector<Slice> sums;
  for (const size_t index : given) {
    Slice whole = replica_.parameters()[index].tensor.gradient;
    if (has_partial_gradient(replica_, index)) {
      whole = sums.emplace_back(sum_of_terms(rank, whole, site));
    } else {
      gradients.push_back(whole);
    }
    if (coverage == PlanCoverage::none || counts_in_norm(replica_, mesh_.tensor, index)) {
      counted.push_back(whole);
    }
  }
  SharedNorm norm{{{mesh_.tensor.group, std::ssize(given)}}, site};
  norm.counted = &counted;
  clip_gradients(rank, options.clipping, gradients, DeviceId{0},
                 coverage == PlanCoverage::all ? &norm : nullptr);
  for (const Slice& sum : sums) {
    rank.release(sum);
  }
  for (const size_t index : given) {
    if (has_partial_gradient(replica_, index)) {
      rank.release(sum_of_terms(rank, replica_.parameters()[index].tensor.gradient, site));
    }
  }
}

// A gradient of terms is summed by the first operation that keeps what it makes of it, which is
// here: DTensor has it as Partial until then.
Program TensorParallel::optimizer_step(Rank& rank, const UpdateOptions& options) {
  UpdateOptions update = options;
  if (options.clipping.algorithm == GradientClipping::Algorithm::norm && rank.world_size() > 1) {
    clip_by_norm(rank, options);
    update.clipping = {};
  }
  const OptimizerPlan optimizer = scheduled(replica_.plan().optimizers[options.optimizer], options);
  const std::vector<PartOfTensor> parts = parts_of_step(optimizer);
  for (const PartOfTensor& part : parts) {
    if (is_in_plan(replica_, part.parameter)) {
      check_distributed(optimizer, replica_, part.parameter, site_id(tensor_sites::update));
    }
  }
  if (rule_of(optimizer.kind).is_elementwise()) {
    for (size_t index = 0; index < replica_.parameters().size(); ++index) {
      if (optimizer.holds(replica_.parameters()[index].place.layer)) {
        sum_for_operands(rank, optimizer, index);
      }
    }
    replica_.optimizer_step(rank, update, site_id(tensor_sites::update));
    co_return;
  }
  replica_.update().clip(rank, update, nullptr);
  const ComputeOptions there{replica_.compute(), {}, site_id(tensor_sites::update)};
  for (const PartOfTensor& part : parts) {
    sum_for_operands(rank, optimizer, part.parameter);
    const std::vector<PartOfTensor> one(1, part);
    co_await step_over_ranks(rank, optimizer, kernels_of(replica_.plan()), one, there,
                             tensor_sites::share_update_norm);
  }
}

void TensorParallel::sum_for_operands(Rank& rank, const OptimizerPlan& optimizer,
                                      size_t parameter) {
  if (!has_partial_gradient(replica_, parameter)) {
    return;
  }
  const Slice& gradient = replica_.parameters()[parameter].tensor.gradient;
  for (int again = 1; again < rule_of(optimizer.kind).gradient_operands(optimizer); ++again) {
    rank.release(sum_of_terms(rank, gradient, site_id(tensor_sites::reduce_partial)));
  }
  sum_partial_gradients(rank, replica_, mesh_.tensor, {parameter}, {});
}

std::vector<PartOfTensor> TensorParallel::parts_of_step(const OptimizerPlan& optimizer) {
  std::vector<PartOfTensor> parts;
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    Replica::Parameter& parameter = replica_.parameters()[index];
    if (!parameter.trainable || parameter.tensor.gradient.buffer == no_buffer ||
        !optimizer.holds(parameter.place.layer)) {
      continue;
    }
    PartOfTensor& part = parts.emplace_back(PartOfTensor{index, &parameter.tensor});
    if (replica_.network().parameter(parameter.place).cut) {
      part.over.push_back(mesh_.tensor.group);
    }
  }
  return parts;
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
  for (const TensorRun& run :
       cut->runs_of(cut->by_experts ? replica.state().division().part_index(*cut) : ranks.index)) {
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
Task<WrittenBytes> TensorParallel::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                   SiteId site) {
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
