#include "model/user_program/device_tensor.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

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
  release_finished(std::exchange(dropped_->unseen, {}));
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
            dropped->unseen.push_back(dropped->ever);
            dropped->tensors.emplace(dropped->ever++, std::move(*last));
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
const std::pair<const StreamId, Ticket>* TensorStore::unfinished_use(
    const DeviceTensor& tensor) const {
  const StreamId home = stream(tensor.home_queue, tensor.device);
  const auto use = std::ranges::find_if(tensor.uses, [&](const auto& each) {
    return each.first != home && !finished(each.first, each.second);
  });
  return use == tensor.uses.end() ? nullptr : &*use;
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
  for (const auto& [number, tensor] : dropped_->tensors) {
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
  std::vector<uint64_t> exposed;
  for (const auto& [number, tensor] : dropped_->tensors) {
    if (is_exposed(tensor)) {
      exposed.push_back(number);
    }
  }
  std::ranges::for_each(exposed, [this](uint64_t tensor) { release(tensor); });
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
  if (ticket.lane == LaneId{}) {
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
  }
  std::vector<uint64_t> may_go = std::exchange(dropped_->unseen, {});
  auto& awaited = awaited_[{ticket.lane, on}];
  while (!awaited.empty() && awaited.begin()->first <= last) {
    may_go.push_back(awaited.begin()->second);
    awaited.erase(awaited.begin());
  }
  std::ranges::sort(may_go);
  release_finished(std::move(may_go));
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
  memory.numbers.push_back(int64_t{dropped_->site.value});
  for (const auto& [number, tensor] : dropped_->tensors) {
    remember(tensor, memory);
    memory.numbers.push_back(int64_t{tensor.dropped_at.value});
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

// What has finished changes with settled() alone, so that each needs to wait for one use at a time.
void TensorStore::release_finished(std::vector<uint64_t> tensors) {
  for (const uint64_t number : tensors) {
    const auto tensor = dropped_->tensors.find(number);
    if (tensor == dropped_->tensors.end()) {
      continue;  // release_exposed() came first
    }
    if (const auto* use = unfinished_use(tensor->second)) {
      awaited_[{use->second.lane, use->first}].emplace(use->second.sequence, number);
    } else {
      release(number);
    }
  }
}

void TensorStore::release(uint64_t number) {
  const auto tensor = dropped_->tensors.find(number);
  rank_.release(tensor->second.slice, tensor->second.dropped_at);
  dropped_->exposed -= tensor->second.exposed.empty() ? 0 : 1;
  dropped_->tensors.erase(tensor);
}

}  // namespace lockstep
