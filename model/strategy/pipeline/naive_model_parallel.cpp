#include "model/strategy/pipeline/naive_model_parallel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "model/strategy/data_parallel/device_copy.hpp"
#include "model/strategy/pipeline/clipping_over_devices.hpp"
#include "model/strategy/pipeline/pipeline_plan.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

constexpr std::string_view carry_activations = "naive model parallelism: activations to a device";
constexpr std::string_view carry_gradients = "naive model parallelism: gradients to a device";
constexpr std::string_view update_on_devices = "naive model parallelism: optimizer step";

constexpr std::string_view activations_carried = "activations_to_devices";
constexpr std::string_view gradients_carried = "gradients_to_devices";

}  // namespace

void NaiveModelParallel::place_layers(int32_t devices) {
  const Network& network = *plan_->network;
  std::vector<StageLayers> stages;
  try {
    stages = stages_of_split(arguments_, network, devices);
  } catch (const ArgumentProblem& problem) {
    throw ProgramException(
        site_id(carry_activations),
        fmt::format("the layers cannot be put on {} devices, a stage on each: {}; {}", devices,
                    problem.what(), problem.remedy()));
  }
  for (const StageLayers& layers : stages) {
    const auto number = static_cast<uint8_t>(devices_.size());
    Device device{Replica(*plan_, DeviceId{number}), layers};
    std::vector<bool> held(network.layers.size());
    for (size_t layer = layers.first; layer < layers.end; ++layer) {
      held[layer] = true;
    }
    device.replica.state().hold_only(held);
    devices_.push_back(std::move(device));
  }
  for (size_t index = 0; index < replica().parameters().size(); ++index) {
    const auto holders = std::ranges::count_if(
        devices_, [index](const Device& device) { return device.replica.holds(index); });
    if (holders > 1) {
      throw ProgramException(site_id(carry_activations),
                             "layers on two devices share a weight: PyTorch raises \"Expected all "
                             "tensors to be on the "
                             "same device\"; put both layers on one device, give the second a "
                             "weight of its own, or use PipelineStrategy, which has a copy on each "
                             "stage");
    }
  }
}

Program NaiveModelParallel::setup(Rank& rank, Stage stage) {
  if (devices_.empty()) {
    place_layers(rank.place().devices);
    for (Device& device : devices_) {
      device.replica.allocate(rank);
    }
  }
  for (Device& device : devices_) {
    if (stage == Stage::fit) {
      device.replica.forget_optimizer(rank);
    }
  }
  co_return;
}

Program NaiveModelParallel::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  // The host runs at most one step ahead of the devices.
  co_await rank.settle(loss_ready_);
  transfers_.begin_forward(options.training);
  for (Device& device : devices_) {
    forget(rank, device);  // an evaluation has no backward that does
  }
  samples_ = batch.size();
  for (size_t device = 0; device < devices_.size(); ++device) {
    forward_on(rank, device, batch, options);
  }
  const Replica& last = devices_.back().replica;
  loss_ready_ = rank.event({last.compute(), {}, site_id(carry_activations)});
}

void NaiveModelParallel::forward_on(Rank& rank, size_t number, const Batch& batch,
                                    const StepOptions& options) {
  Device& device = devices_[number];
  Replica::Part part;
  part.has_loss = number + 1 == devices_.size();
  if (number > 0) {
    part.input = device.input;
  }
  device.replica.begin_part(rank, batch, options, part);
  for (size_t layer = device.layers.first; layer < device.layers.end; ++layer) {
    device.replica.forward_layer(rank, layer, options);
  }
  if (number == 0 || part.has_loss) {
    transfers_.add(data_to_devices, device.replica.batch_bytes());
  }
  if (part.has_loss) {
    device.replica.end_forward(rank, options);
    return;
  }
  device.replica.end_part(rank, options);
  device.output = plan_->numerics ? device.replica.output()
                                  : at_border(rank, number + 1, number, Purpose::activation);
  Device& next = devices_[number + 1];
  next.input = at_border(rank, number + 1, number + 1, Purpose::activation);
  carry(rank, device.output, next.input, device.replica, next.replica, activations_carried);
}

Program NaiveModelParallel::backward(Rank& rank, const StepOptions& options) {
  for (const Device& device : devices_) {
    if (device.replica.forwards().has_passes()) {
      throw ProgramException(site_id(carry_gradients),
                             "a backward through several forwards, or from the output, is not "
                             "modelled under naive_model_parallel; return the loss");
    }
  }
  for (size_t number = devices_.size(); number-- > 0;) {
    backward_on(rank, number, options);
  }
  co_return;
}

void NaiveModelParallel::backward_on(Rank& rank, size_t number, const StepOptions& options) {
  Device& device = devices_[number];
  if (number + 1 == devices_.size()) {
    device.replica.backward_of_loss(rank, options);
  } else {
    device.replica.begin_backward_of_part(device.output_gradient);
  }
  for (const size_t layer : device.replica.layers_last_to_first()) {
    device.replica.backward(rank, layer);
  }
  if (number > 0) {
    const Slice gradient = plan_->numerics ? device.replica.take_input_gradient()
                                           : at_border(rank, number, number, Purpose::workspace);
    Device& before = devices_[number - 1];
    before.output_gradient = at_border(rank, number, number - 1, Purpose::workspace);
    carry(rank, gradient, before.output_gradient, device.replica, before.replica,
          gradients_carried);
    rank.release(gradient);
  }
  forget(rank, device);
}

// Activations and gradients at one border have the same shape.
Slice NaiveModelParallel::at_border(Rank& rank, size_t border, size_t device,
                                    Purpose purpose) const {
  const Network& network = *plan_->network;
  const size_t layer = devices_[border].layers.first;
  return rank.allocate(purpose, input_type_of(network, layer, plan_->types()),
                       samples_ * elements_of(network.layers[layer - 1].output),
                       devices_[device].replica.device());
}

// `.to(device)`: on the stream of the sender, and the receiver's next kernels come after it.
void NaiveModelParallel::carry(Rank& rank, const Slice& from, const Slice& to,
                               const Replica& sender, const Replica& receiver,
                               std::string_view label) {
  const SiteId site = site_id(label == activations_carried ? carry_activations : carry_gradients);
  const Ticket free = rank.event({receiver.compute(), {}, site});
  const Ticket came = copy_between_devices(rank, from, to, {sender.compute(), {free}, site});
  rank.event({receiver.compute(), {came}, site});
  transfers_.add(label, from.bytes());
}

void NaiveModelParallel::forget(Rank& rank, Device& device) const {
  device.replica.forget_forward(rank);
  if (plan_->numerics) {
    device.output = {};  // the replica's own
  }
  for (Slice* slice : {&device.input, &device.output_gradient, &device.output}) {
    if (const Slice memory = std::exchange(*slice, {}); memory.buffer != no_buffer) {
      rank.release(memory);
    }
  }
}

Program NaiveModelParallel::optimizer_step(Rank& rank, const UpdateOptions& options) {
  std::vector<OwnedStep> steps;
  std::vector<GradientsOnDevice> gradients;
  for (Device& device : devices_) {
    OwnedStep& owned = steps.emplace_back();
    for (size_t index = 0; index < device.replica.parameters().size(); ++index) {
      owned.owns.push_back(device.replica.holds(index));
    }
    gradients.push_back(
        {device.replica.device(), device.replica.update().gradients_of(options.optimizer, &owned)});
  }
  clip_gradients_over_devices(rank, options.clipping, gradients);
  UpdateOptions clipped = options;
  clipped.clipping = {};
  for (size_t device = 0; device < devices_.size(); ++device) {
    devices_[device].replica.optimizer_step(rank, clipped, site_id(update_on_devices),
                                            &steps[device]);
  }
  transfers_.end_step();
  co_return;
}

Program NaiveModelParallel::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  for (Device& device : devices_) {
    device.replica.zero_gradients(rank, optimizer, set_to_none);
  }
  co_return;
}

Program NaiveModelParallel::teardown(Rank& rank) {
  for (const Device& device : devices_) {
    const Ticket done = rank.event({device.replica.compute(), {}, site_id(update_on_devices)});
    co_await rank.settle(done);
  }
}

std::vector<HeldParameter> NaiveModelParallel::held_parameters() {
  std::vector<HeldParameter> held;
  for (size_t index = 0; index < replica().parameters().size(); ++index) {
    for (const Device& device : devices_) {
      if (device.replica.holds(index)) {
        held.push_back({index, 0, device.replica.parameters()[index].tensor.value});
      }
    }
  }
  return held;
}

Task<WrittenBytes> NaiveModelParallel::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                       SiteId site) {
  Bytes bytes{};
  for (const Device& device : devices_) {
    for (size_t index = 0; index < device.replica.parameters().size(); ++index) {
      const OptimizedTensor& tensor = device.replica.parameters()[index].tensor;
      if (!device.replica.holds(index)) {
        continue;
      }
      bytes += tensor.value.bytes();
      for (const Slice& state : tensor.state) {
        bytes += request.weights_only ? Bytes{} : state.bytes();
      }
    }
  }
  co_await write_file(rank, bytes, request, 1, site);
  co_return bytes;
}

StrategyEntry naive_model_parallel() {
  StrategyEntry entry;
  entry.name = "naive_model_parallel";
  entry.class_name = "NaiveModelParallelStrategy";
  entry.traits = {
      .layout = ProcessLayout::one_for_all_devices, .one_node = true, .divides_samples = false};
  entry.arguments = {
      {"split", "", "null",
       "blocks, parameters or time; or the layers that begin the later devices",
       ArgumentUse::strategy,
       "null: blocks, or parameters where fewer blocks repeat than there are devices"}};
  for (const std::string_view step : {carry_activations, carry_gradients, update_on_devices}) {
    entry.sites.push_back(step_called(step));
  }
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    if (!plan.network->modules.empty() || plan.optimizers.size() != 1) {
      throw UnmodelledArgument(
          "naive_model_parallel with several modules or optimizers is not modelled", "",
          "give it one model and one optimizer");
    }
    stages_of_split(arguments, *plan.network, stages_in_split(arguments).value_or(1));  // or throws
    return std::make_unique<NaiveModelParallel>(plan, arguments);
  };
  return entry;
}

}  // namespace lockstep
