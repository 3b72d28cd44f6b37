#include "model/trainer/device_tensor.hpp"

#include <algorithm>

namespace lockstep {

namespace {

int64_t product(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    elements *= size;
  }
  return elements;
}

}  // namespace

TensorPointer TensorStore::make(DType dtype, std::vector<int64_t> shape, DeviceId device) {
  release_finished();  // a loop that only makes tensors never settles one
  DeviceTensor tensor;
  tensor.slice = rank_.allocate(Purpose::metric, dtype, product(shape), device);
  tensor.shape = std::move(shape);
  tensor.device = device;
  const std::shared_ptr<Dropped> dropped = dropped_;
  return {new DeviceTensor(std::move(tensor)), [dropped](DeviceTensor* last) {
            dropped->push_back(std::move(*last));
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

bool TensorStore::finished(const DeviceTensor& tensor) const {
  return std::all_of(tensor.uses.begin(), tensor.uses.end(), [this](const auto& use) {
    const auto known = settled_.find({use.second.lane, use.first});
    return !use.second || (known != settled_.end() && known->second >= use.second.sequence);
  });
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
    release_finished();
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
  release_finished();
}

void TensorStore::release_finished() {
  const auto kept = std::stable_partition(dropped_->begin(), dropped_->end(),
                                          [this](const auto& each) { return !finished(each); });
  for (auto each = kept; each != dropped_->end(); ++each) {
    rank_.release(each->slice);
  }
  dropped_->erase(kept, dropped_->end());
}

}  // namespace lockstep
