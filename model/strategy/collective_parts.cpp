#include "model/strategy/collective_parts.hpp"

#include <algorithm>

namespace lockstep {

Program framework_barrier(Rank& rank, GroupId group, bool is_all_reduce, SiteId site) {
  // As every collective of c10d on NCCL it comes after what the current stream holds.
  const Ticket before = is_all_reduce ? rank.event({compute_stream, {}, site}) : Ticket{};
  const CommunicationOptions options{communication_stream, {before}, site};
  const Ticket ticket = is_all_reduce ? rank.all_reduce(group, Slice::of_size(DType::fp32, 1),
                                                        Reduction::sum, options)
                                      : rank.barrier(group, options);
  co_await rank.settle(ticket);
}

namespace {

// Chunks of one type close once they hold at least `chunk`.
std::vector<std::vector<Slice>> chunks_of(const std::vector<Slice>& tensors, Bytes chunk) {
  std::vector<std::vector<Slice>> chunks;
  std::vector<std::pair<DType, std::vector<Slice>>> open;
  for (const Slice& tensor : tensors) {
    auto place = std::find_if(open.begin(), open.end(),
                              [&](const auto& each) { return each.first == tensor.dtype; });
    if (place == open.end()) {
      place = open.insert(open.end(), {tensor.dtype, {}});
    }
    place->second.push_back(tensor);
    Bytes held{};
    for (const Slice& each : place->second) {
      held += each.bytes();
    }
    if (held >= chunk) {
      chunks.push_back(std::move(place->second));
      open.erase(place);
    }
  }
  for (auto& [dtype, rest] : open) {
    chunks.push_back(std::move(rest));
  }
  return chunks;
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

Ticket copy_all(Rank& rank, const std::vector<Slice>& from, const std::vector<Slice>& to,
                After after, SiteId site) {
  KernelCall call;
  call.kernel = Kernel::copy;
  call.reads = from;
  call.writes = to;
  for (const Slice& slice : from) {
    call.memory_traffic += slice.bytes() * 2;
  }
  return rank.compute(call, {compute_stream, after, site});
}

}  // namespace

Program broadcast_coalesced(Rank& rank, GroupId group, std::vector<Slice> tensors, int32_t root,
                            Bytes chunk, SiteId site) {
  struct InFlight {
    Slice flat;
    std::vector<Slice> tensors;
    Ticket done;
  };
  std::vector<InFlight> in_flight;
  std::vector<std::vector<Slice>> chunks = chunks_of(tensors, chunk);
  for (size_t next = 0; next < chunks.size() || !in_flight.empty();) {
    if (next < chunks.size() && in_flight.size() < 2) {
      int64_t elements = 0;
      for (const Slice& tensor : chunks[next]) {
        elements += tensor.elements;
      }
      const Slice flat =
          rank.allocate(Purpose::communication, chunks[next].front().dtype, elements);
      const Ticket packed = copy_all(rank, chunks[next], parts_of(flat, chunks[next]), {}, site);
      const Ticket sent = rank.broadcast(group, flat, root, {communication_stream, {packed}, site});
      in_flight.push_back({flat, std::move(chunks[next]), sent});
      ++next;
      continue;
    }
    InFlight oldest = std::move(in_flight.front());
    in_flight.erase(in_flight.begin());
    const Ticket unpacked =
        copy_all(rank, parts_of(oldest.flat, oldest.tensors), oldest.tensors, {oldest.done}, site);
    co_await rank.settle(unpacked);
    rank.release(oldest.flat);
  }
}

Task<int64_t> agree(Rank& rank, GroupId group, Slice scratch, int64_t own, Reduction reduction,
                    SiteId site) {
  Values value(scratch.dtype, 1);
  value.set_integer(0, own);
  rank.write(scratch, value);
  const Ticket reduced =
      rank.all_reduce(group, scratch, reduction, {communication_stream, {}, site});
  co_await rank.settle(reduced);
  co_return rank.read(scratch).integer(0);
}

}  // namespace lockstep
