#include "model/strategy/exchange/coalesced.hpp"

#include "model/strategy/exchange/bucket.hpp"

namespace lockstep {

std::vector<std::vector<size_t>> coalesce(const std::vector<Slice>& tensors, Bytes limit) {
  std::vector<BucketedTensor> sizes;
  for (const Slice& tensor : tensors) {
    sizes.push_back({tensor.dtype, tensor.bytes()});
  }
  return assign_buckets(sizes, {&limit, 1});
}

std::vector<Slice> chosen(const std::vector<Slice>& tensors, const std::vector<size_t>& indices) {
  std::vector<Slice> slices;
  for (const size_t index : indices) {
    slices.push_back(tensors[index]);
  }
  return slices;
}

int64_t total_elements(const std::vector<Slice>& tensors) {
  int64_t elements = 0;
  for (const Slice& tensor : tensors) {
    elements += tensor.elements;
  }
  return elements;
}

Bytes total_bytes(const std::vector<Slice>& tensors) {
  Bytes bytes{};
  for (const Slice& tensor : tensors) {
    bytes += tensor.bytes();
  }
  return bytes;
}

std::vector<Slice> parts_of(const Slice& flat, const std::vector<Slice>& tensors) {
  std::vector<Slice> parts;
  int64_t begin = 0;
  for (const Slice& tensor : tensors) {
    parts.push_back(flat.part(begin, tensor.elements));
    begin += tensor.elements;
  }
  return parts;
}

Ticket copy_each(Rank& rank, const std::vector<Slice>& from, const std::vector<Slice>& to,
                 const ComputeOptions& options) {
  KernelCall call;
  call.kernel = Kernel::copy;
  call.reads = from;
  call.writes = to;
  call.memory_traffic = total_bytes(from) * 2;
  return rank.compute(call, options);
}

}  // namespace lockstep
