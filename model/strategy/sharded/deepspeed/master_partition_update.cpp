// What the optimizer does with a partition.
#include <fmt/format.h>

#include <algorithm>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/deepspeed/master_partition.hpp"

namespace lockstep {

void MasterPartition::scale(Rank& rank, const Step& step, const Slice& gradient) {
  if (step.loss_scale != 1 && gradient.buffer != no_buffer) {
    elementwise(rank, Kernel::scale, {}, {gradient}, 1 / step.loss_scale,
                {stream_of_update(), {}, step.update_site});
  }
}

void MasterPartition::clip(Rank& rank, const Step& step, const Slice& gradient) {
  if (step.options.clipping.algorithm == GradientClipping::Algorithm::norm) {
    KernelCall clip;
    clip.kernel = Kernel::clip_by_norm;
    clip.scalars = {&step.options.clipping.limit, 1};
    clip.reads = {&squared_norm_, 1};
    clip.writes = {&gradient, 1};
    clip.memory_traffic = gradient.bytes() * 2;
    rank.compute(clip, {stream_of_update(), {norm_ready_}, step.update_site});
  }
}

void check_device_of(const OptimizerPlan& optimizer, bool offloaded, SiteId site) {
  if (optimizer.is_on_host && !offloaded) {
    throw ProgramException(
        site, fmt::format("AssertionError: {} param is on cuda and must be 'cpu', make sure you "
                          "enabled 'offload_optimizer': 'cpu' in your ZeRO config.",
                          class_name_of(optimizer).substr(std::string_view("DeepSpeed").size())));
  }
}

void MasterPartition::update(Rank& rank, const Step& step) {
  const OptimizerPlan optimizer =
      scheduled(replica_->plan().optimizers[step.options.optimizer], step.options);
  check_device_of(optimizer, is_offloaded(), step.update_site);
  const ComputeOptions there{stream_of_update(), {norm_ready_}, step.update_site};
  if (has_gradients() || pieces_.empty()) {
    make_state_of_padding(rank, optimizer, there);
  }
  if (has_gradients()) {
    clip(rank, step, wide_gradient_);
    lockstep::optimizer_step(rank, optimizer, kernels_of(replica_->plan()), given_to(optimizer),
                             there);
    for (OptimizedTensor& flat : flat_) {
      flat.gradient = Slice{};
    }
    for (Piece& piece : pieces_) {
      piece.tensor.gradient = Slice{};
    }
  }
  end_step(rank);
}

// The optimizer has one flat tensor for each group, padding included. What looks at each element
// alone does the same with pieces.
std::vector<OptimizedTensor*> MasterPartition::given_to(const OptimizerPlan& optimizer) {
  std::vector<OptimizedTensor*> tensors;
  if (!rule_of(optimizer.kind).is_elementwise()) {
    flat_.resize(std::max<size_t>(1, groups_.size()));
    for (size_t i = 0; i < flat_.size(); ++i) {
      const int64_t begin = groups_.empty() ? 0 : groups_[i].begin;
      const int64_t elements = groups_.empty() ? master_.elements : groups_[i].elements;
      flat_[i].value = master_.part(begin, elements);
      flat_[i].gradient = wide_gradient_.part(begin, elements);
      tensors.push_back(&flat_[i]);
    }
    return tensors;
  }
  for (Piece& piece : pieces_) {
    piece.tensor.gradient = wide_gradient_.part(piece.position, piece.tensor.value.elements);
    tensors.push_back(&piece.tensor);
  }
  return tensors;
}

// The flat tensor has state for its padding, too, also where it is nothing else.
void MasterPartition::make_state_of_padding(Rank& rank, const OptimizerPlan& optimizer,
                                            const ComputeOptions& there) {
  int64_t padding = master_.elements;
  for (const Piece& piece : pieces_) {
    padding -= piece.tensor.value.elements;
  }
  if (padding > 0 && rule_of(optimizer.kind).is_elementwise()) {
    padding_.value = master_.part(0, padding);
    make_optimizer_state(rank, optimizer, padding_, there);
  }
}

}  // namespace lockstep
