#include "model/user_program/device_tensor.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>

namespace lockstep {

int64_t row_size(const std::vector<int64_t>& shape) {
  return shape.empty()
             ? 1
             : std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
}

namespace {

int64_t product(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    elements *= size;
  }
  return elements;
}

}  // namespace

TensorPointer TensorStore::make(DType dtype, std::vector<int64_t> shape, DeviceId device,
                                uint8_t home_queue) {
  release_finished(dropped_->unfinished);  // a loop that only makes tensors never settles one
  DeviceTensor tensor;
  tensor.home_queue = device == host_device ? queue::compute : home_queue;
  tensor.slice = rank_.allocate(Purpose::metric, dtype, product(shape), device, tensor.home_queue);
  tensor.shape = std::move(shape);
  tensor.device = device;
  return kept(std::move(tensor));
}

TensorPointer TensorStore::adopt(const Slice& slice, std::vector<int64_t> shape) {
  if (slice.buffer == no_buffer) {
    return make_sized(slice.dtype, std::move(shape));
  }
  DeviceTensor tensor;
  tensor.slice = slice;
  tensor.shape = std::move(shape);
  return kept(std::move(tensor));
}

TensorPointer TensorStore::kept(DeviceTensor tensor) {
  const std::shared_ptr<Dropped> dropped = dropped_;
  return {new DeviceTensor(std::move(tensor)), [dropped](DeviceTensor* last) {
            // Where an exception takes the names away, nothing that follows needs the memory.
            if (std::uncaught_exceptions() > 0) {
              last->exposed.clear();
            }
            last->dropped_at = dropped->site;
            last->written_by.reset();
            last->read_by.reset();
            dropped->exposed += last->exposed.empty() ? 0 : 1;
            dropped->tensors.push_back(std::move(*last));
            delete last;
          }};
}

TensorPointer TensorStore::make_sized(DType dtype, std::vector<int64_t> shape) {
  auto tensor = std::make_shared<DeviceTensor>();
  tensor->slice = Slice::of_size(dtype, product(shape));
  tensor->shape = std::move(shape);
  return tensor;
}

TensorPointer TensorStore::borrow(const Slice& slice, std::vector<int64_t> shape, Ticket ready) {
  auto tensor = std::make_shared<DeviceTensor>();
  tensor->slice = slice;
  tensor->shape = std::move(shape);
  tensor->ready = ready;
  tensor->ready_on = compute_stream;
  tensor->uses[compute_stream] = ready;
  tensor->is_borrowed = true;
  return tensor;
}

bool TensorStore::finished(StreamId on, Ticket ticket) const {
  const auto known = settled_.find({ticket.lane, on});
  return !ticket || (known != settled_.end() && known->second >= ticket.sequence);
}

// An allocator hands memory out again at once to the stream that it was allocated for.
bool TensorStore::finished(const DeviceTensor& tensor) const {
  const StreamId home = stream(tensor.home_queue, tensor.device);
  return std::all_of(tensor.uses.begin(), tensor.uses.end(), [&](const auto& use) {
    return use.first == home || finished(use.first, use.second);
  });
}

// Whether the allocator may hand the memory out by now, and some other stream may still use it.
bool TensorStore::is_exposed(const DeviceTensor& tensor) const {
  if (tensor.exposed.empty()) {
    return false;
  }
  return std::all_of(tensor.uses.begin(), tensor.uses.end(), [&](const auto& use) {
    const auto exposure = tensor.exposed.find(use.first);
    if (use.first.queue() == tensor.home_queue || finished(use.first, use.second)) {
      return true;
    }
    if (exposure == tensor.exposed.end()) {
      return false;
    }
    const std::shared_ptr<PendingWork> handle = exposure->second.handle.lock();
    switch (exposure->second.until) {
      case Exposure::Until::dropped: return true;
      case Exposure::Until::waited: return exposure->second.work->waited;
      // One more is that of StartedWork, and one is `handle`.
      case Exposure::Until::work_dies: return handle.use_count() <= 2 || handle->waited;
    }
    return false;
  });
}

std::vector<StreamId> TensorStore::homes_of_exposed() const {
  std::vector<StreamId> homes;
  if (dropped_->exposed == 0) {
    return homes;
  }
  for (const DeviceTensor& tensor : dropped_->tensors) {
    if (is_exposed(tensor)) {
      homes.push_back(stream(tensor.home_queue, tensor.device));
    }
  }
  return homes;
}

void TensorStore::release_exposed() {
  if (dropped_->exposed == 0) {
    return;
  }
  release_if(0, [this](const DeviceTensor& tensor) { return is_exposed(tensor); });
  dropped_->unfinished = 0;
}

void TensorStore::ordered(StreamId later, StreamId earlier, Ticket ticket) {
  orders_[{later, earlier}] = ticket.sequence;
}

bool TensorStore::known_finished(StreamId on, Ticket ticket) const {
  const auto known = known_.find(on);
  return known != known_.end() && known->second >= ticket.sequence;
}

void TensorStore::settled(StreamId on, Ticket ticket) {
  uint32_t& last = settled_[{ticket.lane, on}];
  last = std::max(last, ticket.sequence);
  if (ticket.lane != LaneId{}) {
    release_finished(0);
    return;
  }
  known_[on] = std::max(known_[on], last);
  for (bool more = true; more;) {
    more = false;
    for (const auto& [streams, sequence] : orders_) {
      uint32_t& earlier = known_[streams.second];
      if (known_[streams.first] > sequence && earlier < sequence) {
        earlier = sequence;
        more = true;
      }
    }
  }
  release_finished(0);
}

void TensorStore::remember(const DeviceTensor& tensor, ProgramMemory& memory) {
  memory.numbers.push_back(tensor.slice.bytes().count());
  memory.numbers.push_back(std::ssize(tensor.uses));
  for (const auto& [on, ticket] : tensor.uses) {
    memory.numbers.push_back(int64_t{on.value});
    memory.tickets.push_back(ticket);
  }
}

void TensorStore::remember(ProgramMemory& memory) const {
  memory.numbers.push_back(std::ssize(dropped_->tensors));
  for (const DeviceTensor& tensor : dropped_->tensors) {
    remember(tensor, memory);
  }
  for (const auto& [on, sequence] : settled_) {
    memory.numbers.push_back(int64_t{on.second.value});
    memory.tickets.push_back({sequence, on.first});
  }
  for (const auto& [streams, sequence] : orders_) {
    memory.numbers.push_back(int64_t{streams.first.value});
    memory.numbers.push_back(int64_t{streams.second.value});
    memory.tickets.push_back({sequence, LaneId{}});
  }
  for (const auto& [on, sequence] : known_) {
    memory.numbers.push_back(int64_t{on.value});
    memory.tickets.push_back({sequence, LaneId{}});
  }
}

// What has finished changes with settled() alone.
void TensorStore::release_finished(size_t from) {
  release_if(from, [this](const DeviceTensor& tensor) { return finished(tensor); });
  dropped_->unfinished = dropped_->tensors.size();
}

void TensorStore::release_if(size_t from, const std::function<bool(const DeviceTensor&)>& may_go) {
  std::vector<DeviceTensor>& tensors = dropped_->tensors;
  const auto kept =
      std::stable_partition(tensors.begin() + static_cast<ptrdiff_t>(from), tensors.end(),
                            [&](const auto& each) { return !may_go(each); });
  for (auto each = kept; each != tensors.end(); ++each) {
    rank_.release(each->slice, each->dropped_at);
    dropped_->exposed -= each->exposed.empty() ? 0 : 1;
  }
  tensors.erase(kept, tensors.end());
}

}  // namespace lockstep
