#include "model/strategy/data_parallel/dp.hpp"

#include <algorithm>

#include "model/strategy/data_parallel/device_copy.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/scaled_step.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

constexpr std::string_view copy_parameters = "dp: parameters to a replica";
constexpr std::string_view copy_buffers = "dp: buffers to a replica";
constexpr std::string_view gather_outputs = "dp: outputs to device 0";
constexpr std::string_view scatter_gradients = "dp: output gradients to a replica";
constexpr std::string_view add_gradients = "dp: gradients to device 0";
constexpr std::string_view optimizer_update = "dp: optimizer step";

// transfers.LABEL: the six movements, of which the guides count the model, the data (whose label
// ddp shares) and the outputs.
constexpr std::string_view model_to_devices = "model_to_devices";
constexpr std::string_view buffers_to_devices = "buffers_to_devices";
constexpr std::string_view outputs_to_root = "outputs_to_root";
constexpr std::string_view output_gradients_to_devices = "output_gradients_to_devices";
constexpr std::string_view gradients_to_root = "gradients_to_root";

constexpr DeviceId root{0};

}  // namespace

std::vector<int64_t> chunk_lengths(int64_t elements, int64_t devices) {
  const int64_t length = (elements + devices - 1) / devices;
  std::vector<int64_t> lengths;
  for (int64_t rest = elements; rest > 0; rest -= length) {
    lengths.push_back(std::min(length, rest));
  }
  return lengths;
}

DataParallel::DataParallel(const TrainingPlan& plan)
    : plan_(&plan),
      of_whole_batch_(plan, {outputs_to_root, output_gradients_to_devices, site_id(gather_outputs),
                             site_id(scatter_gradients)}),
      transfers_({data_to_devices, model_to_devices, outputs_to_root}) {}

Program DataParallel::setup(Rank& rank, Stage stage) {
  if (copies_.empty()) {
    for (int32_t device = 0; device < rank.place().devices; ++device) {
      copies_.push_back({Replica(*plan_, DeviceId{static_cast<uint8_t>(device)}), {}, {}, {}});
    }
    replica().allocate(rank, static_cast<uint64_t>(rank.id()));  // ddp2 has several ranks
    loss_ = rank.allocate(Purpose::metric, DType::fp32, 1);
    gathered_ = rank.allocate(Purpose::metric, DType::fp32, rank.place().devices);
  }
  if (stage == Stage::fit) {
    replica().forget_optimizer(rank);
  }
  co_return;
}

Program DataParallel::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  // The host runs at most one step ahead of the devices.
  co_await rank.settle(loss_ready_);
  transfers_.begin_forward(options.training);
  parts_ = parts(batch);                                        // 1
  replicate(rank);                                              // 2
  for (size_t device = 0; device < used_devices(); ++device) {  // 3
    Copy& copy = copies_[device];
    if (gathers_outputs()) {
      forward_to_output(rank, copy, parts_[device], options);
    } else {
      copy.computed = copy.replica.forward(rank, parts_[device], options, {copy.arrived});
    }
    transfers_.add(data_to_devices, copy.replica.batch_bytes());
  }
  if (gathers_outputs()) {
    loss_ready_ = of_whole_batch_.forward(rank, batch, options, outputs(), transfers_);
  } else {
    gather_losses(rank);  // 4, 5
    if (options.training) {
      uneven_.note(parts_);
    }
  }
}

std::vector<KnownDifference> DataParallel::known_differences() {
  std::vector<KnownDifference> known;
  uneven_.add_difference(*plan_->network, known);
  return known;
}

void DataParallel::forward_to_output(Rank& rank, Copy& copy, const Batch& part,
                                     const StepOptions& options) {
  rank.event({copy.replica.compute(), {copy.arrived}, site_id(copy_parameters)});
  copy.replica.begin_part(rank, part, options, {});
  for (size_t layer = 0; layer < plan_->network->layers.size(); ++layer) {
    copy.replica.forward_layer(rank, layer, options);
  }
  copy.replica.end_part(rank, options);
  copy.computed = rank.event({copy.replica.compute(), {}, site_id(gather_outputs)});
}

std::vector<GatheredLoss::Part> DataParallel::outputs() {
  std::vector<GatheredLoss::Part> outputs;
  for (size_t device = 0; device < used_devices(); ++device) {
    outputs.push_back({&copies_[device].replica, parts_[device].size(), copies_[device].computed});
  }
  return outputs;
}

// 1. The batch is cut along its first dimension; a short batch uses fewer devices.
std::vector<Batch> DataParallel::parts(const Batch& batch) const {
  std::vector<Batch> parts;
  auto next = batch.samples.begin();
  for (const int64_t length : chunk_lengths(batch.size(), static_cast<int64_t>(copies_.size()))) {
    parts.push_back({{next, next + length}, batch.given});
    next += length;
  }
  return parts;
}

// 2. All parameters, then all buffers, go from device 0 to every other used device, every time.
void DataParallel::replicate(Rank& rank) {
  for (size_t device = 1; device < copies_.size(); ++device) {
    throw_away(rank, copies_[device]);  // an evaluation has no backward that does
  }
  const Ticket updated = rank.event({replica().compute(), {}, site_id(copy_parameters)});
  for (size_t device = 0; device < used_devices(); ++device) {
    copies_[device].arrived = updated;
  }
  if (used_devices() == 1) {
    return;
  }
  const Views parameters = send_coalesced(rank, replica().parameter_values(), model_to_devices);
  const Views buffers = send_coalesced(rank, replica().state().buffer_values(), buffers_to_devices);
  for (size_t device = 1; device < used_devices(); ++device) {
    copies_[device].replica.state().adopt(rank, parameters[device], buffers[device]);
  }
}

// Chunks travel, and the tensors of a copy are views of them. On the stream of the device that they
// leave, as torch does: its own forward, which changes the running statistics, comes after.
DataParallel::Views DataParallel::send_coalesced(Rank& rank, const std::vector<Slice>& tensors,
                                                 std::string_view label) {
  const StreamId from_root = replica().compute();
  const SiteId site = site_id(label == model_to_devices ? copy_parameters : copy_buffers);
  Views views(used_devices(), tensors);
  Bytes to_each{};
  for (const std::vector<size_t>& indices : coalesce(tensors, coalesced_chunk)) {
    const std::vector<Slice> chunk = chosen(tensors, indices);
    const DType dtype = chunk.front().dtype;
    const int64_t elements = total_elements(chunk);
    const Slice packed = rank.allocate(Purpose::communication, dtype, elements, root);
    copy_each(rank, chunk, parts_of(packed, chunk), {from_root, {}, site});
    for (size_t device = 1; device < used_devices(); ++device) {
      Copy& copy = copies_[device];
      const Slice there = rank.allocate(Purpose::parameter, dtype, elements, copy.replica.device());
      copy.arrived = copy_between_devices(rank, packed, there, {from_root, {}, site});
      copy.chunks.push_back(there);
      const std::vector<Slice> parts = parts_of(there, chunk);
      for (size_t i = 0; i < indices.size(); ++i) {
        views[device][indices[i]] = parts[i];
      }
    }
    rank.release(packed);
    to_each += packed.bytes();
  }
  for (size_t device = 1; device < used_devices() && to_each > Bytes{}; ++device) {
    transfers_.add(label, to_each);
  }
  return views;
}

// 4. One loss per replica comes to device 0, 5. where their plain mean is the loss: every chunk
// counts the same, also a short last one.
void DataParallel::gather_losses(Rank& rank) {
  if (copies_.size() == 1) {
    loss_ready_ = copies_.front().computed;  // one device: torch runs the module as it is
    return;
  }
  std::vector<Ticket> gathered;
  for (size_t device = 0; device < used_devices(); ++device) {
    const Slice own = copies_[device].replica.loss();
    const Slice there = gathered_.part(static_cast<int64_t>(device), 1);
    const CommunicationOptions options{
        stream(queue::copy, root), {copies_[device].computed}, site_id(gather_outputs)};
    if (device == 0) {
      gathered.push_back(rank.copy(own, there, options));
      continue;
    }
    gathered.push_back(copy_between_devices(rank, own, there, options));
    transfers_.add(outputs_to_root, own.bytes());
  }
  const Slice all = gathered_.part(0, static_cast<int64_t>(used_devices()));
  KernelCall call;
  call.kernel = Kernel::average;
  call.reads = {&all, 1};
  call.writes = {&loss_, 1};
  call.memory_traffic = all.bytes();
  loss_ready_ = rank.compute(call, {replica().compute(), gathered, site_id(gather_outputs)});
}

Slice DataParallel::loss() const {
  if (gathers_outputs()) {
    return of_whole_batch_.loss();
  }
  return copies_.size() == 1 ? copies_.front().replica.loss() : loss_;
}

Slice DataParallel::loss_of(size_t part) const {
  return copies_.size() == 1 || gathers_outputs() ? loss()
                                                  : gathered_.part(static_cast<int64_t>(part), 1);
}

// Of a loss that training_step_end has computed.
void DataParallel::backward_from_outputs(Rank& rank, const StepOptions& options) {
  of_whole_batch_.backward(rank, options, outputs(), transfers_);
  for (size_t device = 0; device < used_devices(); ++device) {
    Copy& copy = copies_[device];
    for (const size_t layer : copy.replica.layers_last_to_first()) {
      const Ticket last = copy.replica.backward(rank, layer);
      copy.computed = last ? last : copy.computed;
    }
  }
}

Program DataParallel::backward(Rank& rank, const StepOptions& options) {
  StepOptions of_part = options;
  of_part.loss_factor = options.loss_factor / static_cast<double>(used_devices());
  if (gathers_outputs()) {
    backward_from_outputs(rank, options);
  }
  for (size_t device = 0; device < used_devices() && !gathers_outputs(); ++device) {  // 6
    Copy& copy = copies_[device];
    const Ticket gradient = device == 0 ? loss_ready_ : scatter_output_gradient(rank, copy);
    const int64_t last_forward = copy.replica.forwards().last();
    for (const BackwardPass& pass :
         copy.replica.forwards().take_passes(of_part)) {  // several on one device
      copy.replica.forwards().turn_to(pass.forward);
      copy.computed = copy.replica.backward_of_loss(rank, pass.applied_to(of_part), {gradient});
      for (const size_t layer : copy.replica.layers_last_to_first()) {
        const Ticket last = copy.replica.backward(rank, layer);
        copy.computed = last ? last : copy.computed;
      }
      if (used_devices() == 1) {
        copy.replica.forget_forward(rank);
      }
    }
    copy.replica.forwards().return_to(last_forward);
  }
  reduce_gradients(rank);
  for (size_t device = 0; device < used_devices(); ++device) {
    copies_[device].replica.forget_forward(rank);
  }
  of_whole_batch_.forget(rank);
  // Attributes that a replica's forward set are lost with it.
  for (size_t device = 1; device < used_devices(); ++device) {
    throw_away(rank, copies_[device]);
  }
  co_return;
}

// The gather's backward: each replica gets the gradient of its own loss.
Ticket DataParallel::scatter_output_gradient(Rank& rank, const Copy& to) {
  const Slice gradient = Slice::of_size(DType::fp32, 1);
  transfers_.add(output_gradients_to_devices, gradient.bytes());
  return copy_between_devices(
      rank, gradient, gradient,
      {stream(queue::copy, to.replica.device()), {loss_ready_}, site_id(scatter_gradients)});
}

// The broadcast's backward: the sum (not the mean) of all gradients on device 0, in the same
// chunks, once every replica has finished. It is one function of all parameters, so that a
// parameter that no layer used gets zeros and not None.
void DataParallel::reduce_gradients(Rank& rank) {
  if (used_devices() == 1) {
    return;
  }
  std::vector<Slice> parameters;
  for (const Replica::Parameter& parameter : replica().parameters()) {
    if (parameter.trainable) {
      parameters.push_back(parameter.tensor.value);
    }
  }
  const std::vector<std::vector<size_t>> chunks = coalesce(parameters, coalesced_chunk);
  replica().state().fill_missing_gradients(rank);
  for (size_t device = 1; device < used_devices(); ++device) {
    copies_[device].replica.state().fill_missing_gradients(rank);
    add_to_root(rank, copies_[device], chunks);
  }
}

void DataParallel::add_to_root(Rank& rank, Copy& from,
                               const std::vector<std::vector<size_t>>& chunks) {
  std::vector<Ticket> all_computed;
  for (size_t device = 0; device < used_devices(); ++device) {
    all_computed.push_back(copies_[device].computed);
  }
  const StreamId there = from.replica.compute();
  const SiteId site = site_id(add_gradients);
  const std::vector<Slice> gradients = from.replica.state().gradients();
  const std::vector<Slice> sums = replica().state().gradients();
  Bytes moved{};
  for (const std::vector<size_t>& indices : chunks) {
    const std::vector<Slice> chunk = chosen(gradients, indices);
    const std::vector<Slice> sum = chosen(sums, indices);
    const DType dtype = chunk.front().dtype;
    const int64_t elements = total_elements(chunk);
    const Slice packed =
        rank.allocate(Purpose::communication, dtype, elements, from.replica.device());
    const Slice here = rank.allocate(Purpose::communication, dtype, elements, root);
    copy_each(rank, chunk, parts_of(packed, chunk), {there, all_computed, site});
    // On the stream of the device it leaves, as torch does: the replica is released after it.
    const Ticket came = copy_between_devices(rank, packed, here, {there, {}, site});
    const std::vector<Slice> terms = parts_of(here, chunk);
    KernelCall call;
    call.kernel = Kernel::add;
    call.reads = terms;
    call.writes = sum;
    call.memory_traffic = here.bytes() * 3;
    rank.compute(call, {replica().compute(), {came}, site});
    rank.release(packed);
    rank.release(here);
    moved += here.bytes();
  }
  transfers_.add(gradients_to_root, moved);
}

void DataParallel::throw_away(Rank& rank, Copy& copy) {
  if (!copy.replica.is_allocated()) {
    return;
  }
  copy.replica.release(rank);
  for (const Slice& chunk : copy.chunks) {
    rank.release(chunk);
  }
  copy.chunks.clear();
}

Program DataParallel::optimizer_step(Rank& rank, const UpdateOptions& options) {  // 7
  const std::optional<UpdateOptions> update = co_await scaled_step(rank, replica(), options);
  if (update) {
    replica().optimizer_step(rank, *update, site_id(optimizer_update));
  }
  transfers_.end_step();
}

Program DataParallel::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  replica().zero_gradients(rank, optimizer, set_to_none);
  co_return;
}

StrategyEntry data_parallel() {
  StrategyEntry entry;
  entry.name = "dp";
  entry.class_name = "DataParallelStrategy";
  entry.traits = {.layout = ProcessLayout::one_for_all_devices, .one_node = true};
  entry.traits.loss_scaling = LossScaling::of_trainer;
  entry.traits.holds_whole_state = true;
  entry.traits.takes_tensor_norms = true;
  entry.arguments = {{"parallel_devices", "list", "null",
                      "the devices; `devices` of the Trainer names them", ArgumentUse::unmodelled,
                      "null: those of `devices`"}};
  for (const std::string_view step : {copy_parameters, copy_buffers, gather_outputs,
                                      scatter_gradients, add_gradients, optimizer_update}) {
    entry.sites.push_back(step_called(step));
  }
  entry.make = [](const TrainingPlan& plan, const StrategyArguments&) {
    return std::make_unique<DataParallel>(plan);
  };
  return entry;
}

}  // namespace lockstep
