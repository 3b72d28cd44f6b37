#include "model/strategy/data_parallel/gathered_loss.hpp"

#include <utility>

#include "model/strategy/data_parallel/device_copy.hpp"

namespace lockstep {

namespace {
constexpr DeviceId first_device{0};
}

GatheredLoss::GatheredLoss(const TrainingPlan& plan, const Labels& labels)
    : plan_(&plan), labels_(labels), head_(plan, first_device) {}

int64_t GatheredLoss::elements_of_part(const Part& part) const {
  return part.samples * elements_of(plan_->network->loss.input);
}

Slice GatheredLoss::make(Rank& rank, int64_t elements, DeviceId device) const {
  return rank.allocate(Purpose::workspace, plan_->activation_dtype, elements, device);
}

Ticket GatheredLoss::forward(Rank& rank, const Batch& whole, const StepOptions& options,
                             std::span<const Part> parts, Transfers& transfers) {
  if (!head_.is_allocated()) {
    head_.state().allocate_without_parameters(rank);
  }
  forget(rank);
  int64_t elements = 0;
  for (const Part& part : parts) {
    elements += elements_of_part(part);
  }
  outputs_ = make(rank, elements, first_device);
  std::vector<Ticket> gathered;
  int64_t at = 0;
  for (const Part& part : parts) {
    const Slice there = outputs_.part(at, elements_of_part(part));
    const Slice own =
        plan_->numerics ? part.replica->output() : Slice::of_size(there.dtype, there.elements);
    const CommunicationOptions on_copies{
        stream(queue::copy, first_device), {part.computed}, labels_.gather};
    if (part.replica->device() == first_device) {
      gathered.push_back(rank.copy(own, there, on_copies));
    } else {
      gathered.push_back(copy_between_devices(rank, own, there, on_copies));
      transfers.add(labels_.outputs, there.bytes());
    }
    at += there.elements;
  }
  rank.event({head_.compute(), gathered, labels_.gather});
  head_.begin_part(rank, whole, options, {outputs_, true});
  ready_ = head_.end_forward(rank, options);
  return ready_;
}

void GatheredLoss::backward(Rank& rank, const StepOptions& options, std::span<const Part> parts,
                            Transfers& transfers) {
  const Ticket done = head_.backward_of_loss(rank, options, {ready_});
  const Slice all =
      plan_->numerics ? head_.take_input_gradient() : make(rank, outputs_.elements, first_device);
  int64_t at = 0;
  for (const Part& part : parts) {
    const Slice here = all.part(at, elements_of_part(part));
    at += here.elements;
    const DeviceId device = part.replica->device();
    if (device == first_device) {
      part.replica->begin_backward_of_part(here);
      continue;
    }
    gradients_.push_back(make(rank, here.elements, device));
    const Ticket came = copy_between_devices(
        rank, here, gradients_.back(), {stream(queue::copy, device), {done}, labels_.scatter});
    rank.event({part.replica->compute(), {came}, labels_.scatter});
    transfers.add(labels_.output_gradients, here.bytes());
    part.replica->begin_backward_of_part(gradients_.back());
  }
  gradients_.push_back(all);
}

void GatheredLoss::forget(Rank& rank) {
  head_.forget_forward(rank);
  for (const Slice& gradient : std::exchange(gradients_, {})) {
    rank.release(gradient);
  }
  if (outputs_.buffer != no_buffer) {
    rank.release(std::exchange(outputs_, Slice{}));
  }
}

}  // namespace lockstep
