#include "model/strategy/dp.hpp"

#include <algorithm>

namespace lockstep {

namespace {

constexpr std::string_view copy_parameters = "dp: parameters to a replica";
constexpr std::string_view copy_buffers = "dp: buffers to a replica";
constexpr std::string_view gather_outputs = "dp: outputs to device 0";
constexpr std::string_view scatter_gradients = "dp: output gradients to a replica";
constexpr std::string_view add_gradients = "dp: gradients to device 0";
constexpr std::string_view update = "dp: optimizer step";

// transfers.LABEL of a scenario: the six movements, three of which the guides count.
constexpr std::string_view data_to_devices = "data_to_devices";
constexpr std::string_view model_to_devices = "model_to_devices";
constexpr std::string_view buffers_to_devices = "buffers_to_devices";
constexpr std::string_view outputs_to_root = "outputs_to_root";
constexpr std::string_view output_gradients_to_devices = "output_gradients_to_devices";
constexpr std::string_view gradients_to_root = "gradients_to_root";

constexpr DeviceId root{0};

CommunicationOptions on_device(DeviceId device, Ticket after, std::string_view step) {
  return {stream(queue::copy, device), {after}, site_id(step)};
}

}  // namespace

std::vector<int64_t> chunk_lengths(int64_t elements, int64_t devices) {
  const int64_t length = (elements + devices - 1) / devices;
  std::vector<int64_t> lengths;
  for (int64_t rest = elements; rest > 0; rest -= length) {
    lengths.push_back(std::min(length, rest));
  }
  return lengths;
}

Program DataParallel::setup(Rank& rank) {
  for (int32_t device = 0; device < rank.place().devices; ++device) {
    replicas_.emplace_back(*plan_, DeviceId{static_cast<uint8_t>(device)});
  }
  replicas_.front().allocate(rank);
  loss_ = rank.allocate(Purpose::metric, DType::fp32, 1);
  gathered_ = rank.allocate(Purpose::metric, DType::fp32, rank.place().devices);
  co_return;
}

// 1. The batch is cut along its first dimension; a short batch uses fewer devices.
void DataParallel::scatter(const Batch& batch) {
  chunks_.clear();
  auto next = batch.samples.begin();
  for (const int64_t length : chunk_lengths(batch.size(), static_cast<int64_t>(replicas_.size()))) {
    chunks_.push_back({{next, next + length}});
    next += length;
  }
  transfer(data_to_devices).count += used_devices();
}

// 2. All parameters, then all buffers, go from device 0 to every other used device, every time. On
// the stream of the device they leave, as torch does: its own forward, which changes the running
// statistics, comes after.
void DataParallel::replicate(Rank& rank) {
  Replica& first = replicas_.front();
  const Ticket updated = rank.event({first.compute(), {}, site_id(copy_parameters)});
  arrived_.assign(1, updated);
  for (int32_t device = 1; device < used_devices(); ++device) {
    Replica& replica = replicas_[static_cast<size_t>(device)];
    if (!replica.parameters().empty()) {
      replica.release(rank);  // an evaluation has no backward that throws it away
    }
    replica.allocate(rank);
    Ticket last = updated;
    for (size_t i = 0; i < first.parameters().size(); ++i) {
      const Slice& from = first.parameters()[i].tensor.value;
      last = rank.copy(from, replica.parameters()[i].tensor.value,
                       {first.compute(), {last}, site_id(copy_parameters)});
      transfer(model_to_devices).bytes += from.bytes();
    }
    for (size_t i = 0; i < first.buffers().size(); ++i) {
      const Slice& from = first.buffers()[i].value;
      last = rank.copy(from, replica.buffers()[i].value,
                       {first.compute(), {last}, site_id(copy_buffers)});
      transfer(buffers_to_devices).bytes += from.bytes();
    }
    transfer(model_to_devices).count += 1;
    transfer(buffers_to_devices).count += first.buffers().empty() ? 0 : 1;
    arrived_.push_back(last);
  }
}

Program DataParallel::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  // The host runs at most one step ahead of the devices.
  co_await rank.settle(loss_ready_);
  transfers_.clear();
  scatter(batch);   // 1
  replicate(rank);  // 2
  computed_.clear();
  for (int32_t device = 0; device < used_devices(); ++device) {  // 3
    const auto index = static_cast<size_t>(device);
    computed_.push_back(replicas_[index].forward(rank, chunks_[index], options, {arrived_[index]}));
  }
  gather_losses(rank);  // 4, 5
}

// 4. One loss a replica comes to device 0, 5. where their plain mean is the loss: every chunk
// counts the same, also a short last one.
void DataParallel::gather_losses(Rank& rank) {
  std::vector<Ticket> here;
  for (int32_t device = 0; device < used_devices(); ++device) {
    const auto index = static_cast<size_t>(device);
    here.push_back(rank.copy(replicas_[index].loss(), gathered_.part(device, 1),
                             on_device(root, computed_[index], gather_outputs)));
    if (device > 0) {
      transfer(outputs_to_root).count += 1;
      transfer(outputs_to_root).bytes += replicas_[index].loss().bytes();
    }
  }
  const Slice all = gathered_.part(0, used_devices());
  KernelCall call;
  call.kernel = Kernel::average;
  call.reads = {&all, 1};
  call.writes = {&loss_, 1};
  call.memory_traffic = all.bytes();
  loss_ready_ = rank.compute(call, {stream(queue::compute, root), here, site_id(gather_outputs)});
}

Program DataParallel::backward(Rank& rank, const StepOptions& options) {
  StepOptions chunk = options;
  chunk.loss_factor = options.loss_factor / used_devices();
  computed_.clear();
  for (int32_t device = 0; device < used_devices(); ++device) {  // 6
    Replica& replica = replicas_[static_cast<size_t>(device)];
    Ticket gradient = loss_ready_;
    if (device > 0) {
      const Slice sent = Slice::of_size(DType::fp32, 1);
      gradient = rank.copy(sent, sent, on_device(replica.device(), loss_ready_, scatter_gradients));
      transfer(output_gradients_to_devices).count += 1;
      transfer(output_gradients_to_devices).bytes += sent.bytes();
    }
    Ticket done = replica.backward_of_loss(rank, chunk, {gradient});
    for (const size_t layer : replica.layers_last_to_first()) {
      const Ticket last = replica.backward(rank, layer);
      done = last ? last : done;
    }
    computed_.push_back(done);
  }
  reduce_gradients(rank);
  for (Replica& replica : replicas_) {
    replica.forget_forward(rank);
  }
  // The copies are thrown away: what a replica's forward assigned to itself is lost.
  for (int32_t device = 1; device < used_devices(); ++device) {
    replicas_[static_cast<size_t>(device)].release(rank);
  }
  co_return;
}

// The sum (not the mean) of all gradients on device 0, once every replica has finished.
void DataParallel::reduce_gradients(Rank& rank) {
  Replica& first = replicas_.front();
  for (int32_t device = 1; device < used_devices(); ++device) {
    Replica& replica = replicas_[static_cast<size_t>(device)];
    for (size_t i = 0; i < first.parameters().size(); ++i) {
      const Slice& gradient = replica.parameters()[i].tensor.gradient;
      if (gradient.buffer == no_buffer) {
        continue;
      }
      first.ensure_gradient(rank, first.parameters()[i]);
      const Slice& sum = first.parameters()[i].tensor.gradient;
      const Slice here = rank.allocate(Purpose::communication, sum.dtype, sum.elements, root);
      // On the stream of the device it leaves, as torch does: the replica is released after it.
      const Ticket came =
          rank.copy(gradient, here, {replica.compute(), computed_, site_id(add_gradients)});
      KernelCall call;
      call.kernel = Kernel::add;
      call.reads = {&here, 1};
      call.writes = {&sum, 1};
      call.memory_traffic = sum.bytes() * 3;
      rank.compute(call, {first.compute(), {came}, site_id(add_gradients)});
      rank.release(here);
      transfer(gradients_to_root).bytes += gradient.bytes();
    }
    transfer(gradients_to_root).count += 1;
  }
}

Program DataParallel::optimizer_step(Rank& rank) {  // 7
  replicas_.front().optimizer_step(rank, site_id(update), {});
  co_return;
}

Program DataParallel::zero_gradients(Rank& rank, bool set_to_none) {
  replicas_.front().zero_gradients(rank, set_to_none);
  co_return;
}

Program DataParallel::all_gather(Rank& rank, Slice part, Slice whole, SiteId site) {
  KernelCall call;
  call.kernel = Kernel::copy;
  call.reads = {&part, 1};
  call.writes = {&whole, 1};
  call.memory_traffic = part.bytes() * 2;
  const Ticket copied = rank.compute(call, {compute_stream, {}, site});
  co_await rank.settle(copied);
}

std::vector<Strategy::Transfer> DataParallel::transfers_per_step() const {
  std::vector<Transfer> all = transfers_;
  // Model copy, data copy, outputs back: what the guides count of the six.
  all.push_back({"counted_by_guides", 3, {}});
  return all;
}

Strategy::Transfer& DataParallel::transfer(std::string_view label) {
  for (Transfer& known : transfers_) {
    if (known.label == label) {
      return known;
    }
  }
  return transfers_.emplace_back(Transfer{std::string(label), 0, {}});
}

StrategyEntry data_parallel() {
  StrategyEntry entry;
  entry.name = "dp";
  entry.class_name = "DataParallelStrategy";
  entry.one_process = true;
  for (const std::string_view step :
       {copy_parameters, copy_buffers, gather_outputs, scatter_gradients, add_gradients, update}) {
    entry.sites.push_back({std::string(step), "", 0, 0, "", "", {}, ""});
  }
  entry.make = [](const TrainingPlan& plan, const StrategyArguments&) {
    return std::make_unique<DataParallel>(plan);
  };
  return entry;
}

}  // namespace lockstep
