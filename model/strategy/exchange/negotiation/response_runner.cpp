#include "model/strategy/exchange/negotiation/response_runner.hpp"

#include <algorithm>
#include <numeric>

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/exchange/negotiation/negotiation_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

using namespace negotiation_sites;

namespace {

// On a GPU a tensor of a fusion buffer begins at a multiple of 16 bytes.
Bytes padded(Bytes bytes, bool on_gpu) {
  constexpr int64_t unit = 16;
  return on_gpu ? Bytes((bytes.count() + unit - 1) / unit * unit) : bytes;
}

// Of a call in which so much travels. Trainer and program reduce numbers of their own, in calls by
// themselves or among gradients.
Bytes bytes_of_gradients(std::span<ResponseRunner::Item* const> call, Bytes travelling) {
  bool has_gradients = false;
  for (const ResponseRunner::Item* item : call) {
    const TensorRequest& request = item->response.request;
    const NameSpace space = request.name.space;
    const bool is_gradient = space == NameSpace::parameter || space == NameSpace::in_group;
    has_gradients |= is_gradient;
    travelling -= is_gradient ? Bytes{} : Bytes(size_of(request.dtype)) * request.elements;
  }
  return has_gradients ? travelling : Bytes{};
}

}  // namespace

Program ResponseRunner::run(Rank& rank, Among among, std::vector<Item> items) {
  calls_ = calls_of(items);
  for (under_way_ = 0; under_way_ < calls_.size(); ++under_way_) {
    co_await run_call(rank, among, calls_[under_way_]);
  }
}

std::vector<ResponseRunner::Call> ResponseRunner::calls_of(std::vector<Item>& items) const {
  std::vector<FusibleTensor> tensors;
  for (const Item& item : items) {
    const TensorRequest& request = item.response.request;
    const bool fuses = request.name.kind == RequestKind::all_reduce &&
                       item.response.error == TensorResponse::Error::none;
    const Bytes bytes(request.elements * size_of(request.dtype));
    constexpr int64_t reductions = 8;
    tensors.push_back(
        {static_cast<int64_t>(request.dtype) * reductions + static_cast<int64_t>(request.reduction),
         fuses, padded(bytes, !options_.waits_for_each)});
  }
  std::vector<Call> calls;
  for (const std::vector<size_t>& positions : fuse(tensors, options_.threshold)) {
    Call& call = calls.emplace_back();
    for (const size_t position : positions) {
      call.push_back(&items[position]);
    }
  }
  return calls;
}

Program ResponseRunner::run_call(Rank& rank, Among among, Call call) {
  const TensorRequest& request = call.front()->response.request;
  const bool has_data =
      request.name.kind != RequestKind::join && request.name.kind != RequestKind::barrier;
  if (call.front()->response.error == TensorResponse::Error::none && has_data) {
    // The background thread waits until the device has all that travels.
    std::vector<Ticket> ready;
    for (const Item* item : call) {
      if (item->submission != nullptr && item->submission->ready) {
        ready.push_back(item->submission->ready);
      }
    }
    if (!ready.empty()) {
      waits_for_ = WaitsFor::data;
      co_await rank.settle_all(ready);
      waits_for_ = WaitsFor::nothing;
    }
    Submission* own = call.front()->submission;
    if (request.name.kind == RequestKind::all_reduce) {
      co_await all_reduce(rank, among, call, {});
    } else if (request.name.kind == RequestKind::broadcast) {
      own->result = rank.broadcast(among.group, own->data, request.root,
                                   {communication_stream, {}, site_id(send)});
    } else {
      own->result = all_gather(rank, among, call.front()->response.parts, *own);
    }
    if (options_.waits_for_each && own != nullptr) {
      waits_for_ = WaitsFor::result;
      co_await rank.settle(own->result);
      waits_for_ = WaitsFor::nothing;
    }
  }
  for (const Item* item : call) {
    if (item->submission != nullptr) {
      item->submission->error = item->response.error;
      rank.fulfil(item->submission->carried_out);
    }
  }
}

// Unequal parts go round as broadcasts (nccl_operations.cc, NCCLAllgather).
Ticket ResponseRunner::all_gather(Rank& rank, Among among, const std::vector<int64_t>& parts,
                                  Submission& own) {
  const int64_t total = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  if (own.whole.elements == 0) {
    own.whole = own.data.buffer == no_buffer
                    ? Slice::of_size(own.data.dtype, total)
                    : rank.allocate(options_.purpose, own.data.dtype, total);
  }
  const auto differs = [&](int64_t part) { return part != parts.front(); };
  if (std::ranges::none_of(parts, differs)) {
    return rank.all_gather(among.group, own.data, own.whole,
                           {communication_stream, {}, site_id(gather)});
  }
  const CommunicationOptions options{communication_stream, {}, site_id(gather_part)};
  Ticket last;
  int64_t first = 0;
  for (size_t member = 0; member < parts.size(); ++member) {
    const Slice part = own.whole.part(first, parts[member]);
    const int32_t root = among.members[member];
    if (root == rank.id() && parts[member] > 0) {
      rank.copy(own.data, part, {communication_stream, {}, site_id(gather_part)});
    }
    last = parts[member] > 0 ? rank.broadcast(among.group, part, root, options) : last;
    first += parts[member];
  }
  return last;
}

Slice ResponseRunner::buffer_of(Rank& rank, DType dtype, int64_t elements) {
  const int64_t whole = options_.keeps_whole_buffer
                            ? std::max(elements, options_.threshold.count() / size_of(dtype))
                            : elements;
  if (buffer_.buffer == no_buffer || buffer_.dtype != dtype || buffer_.elements < elements) {
    release(rank);
    buffer_ = rank.allocate(options_.purpose, dtype, whole, DeviceId{0}, queue::communication);
  }
  return buffer_.part(0, elements);
}

void ResponseRunner::release(Rank& rank) {
  if (buffer_.buffer != no_buffer) {
    rank.release(std::exchange(buffer_, Slice{}));
  }
}

// A rank that has joined lends memory of zeros.
std::vector<Slice> ResponseRunner::tensors_of(Rank& rank, const Call& call,
                                              std::vector<Slice>& lent) const {
  std::vector<Slice> tensors;
  for (const Item* item : call) {
    if (item->submission != nullptr) {
      tensors.push_back(item->submission->data);
      continue;
    }
    const TensorRequest& request = item->response.request;
    lent.push_back(rank.allocate(options_.purpose, call.front()->response.request.dtype,
                                 request.elements, DeviceId{0}, queue::communication));
    tensors.push_back(lent.back());
  }
  return tensors;
}

Program ResponseRunner::all_reduce(Rank& rank, Among among, const Call& call, Ticket ready) {
  const TensorRequest& request = call.front()->response.request;
  std::vector<Slice> lent;
  const std::vector<Slice> tensors = tensors_of(rank, call, lent);
  const ComputeOptions here{communication_stream, {ready}, site_id(pack)};
  if (!lent.empty()) {
    elementwise(rank, Kernel::fill, {}, lent, 0, {communication_stream, {}, site_id(zeros)});
  }
  const bool fused = tensors.size() > 1;
  const Slice travels =
      fused ? buffer_of(rank, request.dtype, total_elements(tensors)) : tensors.front();
  const std::vector<Slice> parts = fused ? parts_of(travels, tensors) : std::vector<Slice>();
  if (fused) {
    copy_each(rank, tensors, parts, here);
  }
  const auto scaled_by = [&](double factor) {
    if (factor != 1) {
      elementwise(rank, Kernel::scale, {}, {travels}, factor,
                  {communication_stream, {}, site_id(postscale)});
    }
  };
  const bool averages = request.reduction == Reduction::avg;
  const bool divides = averages && !(options_.average_of_backend && options_.predivide_factor == 1);
  if (averages) {
    scaled_by(1 / options_.predivide_factor);
  }
  if (const Bytes bytes = bytes_of_gradients(call, travels.bytes()); bytes.count() > 0) {
    reduced_bytes_.push_back(bytes);
  }
  Ticket last = rank.all_reduce(
      among.group, travels, divides ? Reduction::sum : request.reduction,
      {communication_stream, {}, site_id(fused ? negotiation_sites::reduce : reduce_alone)});
  if (divides) {
    last = elementwise(rank, Kernel::scale, {}, {travels},
                       options_.predivide_factor / static_cast<double>(among.members.size()),
                       {communication_stream, {last}, site_id(postscale)});
  }
  if (fused) {
    last = copy_each(rank, parts, tensors, {communication_stream, {last}, site_id(spread_buffer)});
  }
  for (const Slice& zeros_of_joined : lent) {
    rank.release(zeros_of_joined);
  }
  for (const Item* item : call) {
    if (item->submission != nullptr) {
      item->submission->result = last;
    }
  }
  if (options_.waits_for_each) {
    waits_for_ = WaitsFor::result;
    co_await rank.settle(last);
    waits_for_ = WaitsFor::nothing;
  }
}

}  // namespace lockstep
