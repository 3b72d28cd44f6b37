#include "model/strategy/exchange/collective_parts.hpp"

#include <deque>
#include <utility>

#include "model/strategy/exchange/coalesced.hpp"

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

Program broadcast_coalesced(Rank& rank, GroupId group, std::vector<Slice> tensors, int32_t root,
                            SiteId site) {
  struct InFlight {
    Slice flat;
    std::vector<Slice> tensors;
    Ticket sent;
  };
  constexpr size_t most_in_flight = 2;
  std::deque<InFlight> in_flight;
  const std::vector<std::vector<size_t>> chunks = coalesce(tensors, broadcast_chunk);
  for (size_t next = 0; next < chunks.size() || !in_flight.empty();) {
    if (next < chunks.size() && in_flight.size() < most_in_flight) {
      std::vector<Slice> chunk = chosen(tensors, chunks[next++]);
      const Slice flat =
          rank.allocate(Purpose::communication, chunk.front().dtype, total_elements(chunk));
      const Ticket packed =
          copy_each(rank, chunk, parts_of(flat, chunk), {compute_stream, {}, site});
      const Ticket sent = rank.broadcast(group, flat, root, {communication_stream, {packed}, site});
      in_flight.push_back({flat, std::move(chunk), sent});
      continue;
    }
    const InFlight oldest = std::move(in_flight.front());
    in_flight.pop_front();
    const Ticket unpacked = copy_each(rank, parts_of(oldest.flat, oldest.tensors), oldest.tensors,
                                      {compute_stream, {oldest.sent}, site});
    co_await rank.settle(unpacked);
    rank.release(oldest.flat);
  }
}

void SharedNumber::allocate(Rank& rank, DType dtype) {
  number_ = rank.allocate(Purpose::metric, dtype, 1);
}

Program SharedNumber::release(Rank& rank) {
  co_await rank.settle(std::exchange(reduced_, Ticket{}));
  rank.release(std::exchange(number_, Slice{}));
}

Program SharedNumber::reduce(Rank& rank, GroupId group, int64_t own, Reduction reduction,
                             SiteId site) {
  co_await rank.settle(reduced_);  // what the last call read and wrote
  rank.write(number_, Values::of(number_.dtype, {static_cast<double>(own)}));
  reduced_ = rank.all_reduce(group, number_, reduction, {communication_stream, {}, site});
}

Task<int64_t> SharedNumber::value(Rank& rank) {
  co_await rank.settle(reduced_);
  co_return static_cast<int64_t>(rank.read(number_).number(0));
}

}  // namespace lockstep
