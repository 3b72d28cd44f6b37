#include "model/strategy/exchange/object_exchange.hpp"

namespace lockstep {

namespace {

CommunicationOptions options_of(Rank& rank, ObjectExchange exchange) {
  const Ticket computed = rank.event({compute_stream, {}, exchange.site});
  return {communication_stream, {computed}, exchange.site};
}

// Only the root has what comes from all, or goes to all.
Slice of_all(Rank& rank, ObjectExchange exchange, DType dtype, int64_t elements) {
  return rank.id() == exchange.root
             ? rank.allocate(Purpose::communication, dtype, elements * exchange.ranks)
             : Slice{};
}

void release(Rank& rank, const Slice& of_all) {
  if (of_all.buffer != no_buffer) {
    rank.release(of_all);
  }
}

Program all_gather_all(Rank& rank, ObjectExchange exchange, DType dtype, int64_t elements) {
  const Slice own = rank.allocate(Purpose::communication, dtype, elements);
  const Slice all = rank.allocate(Purpose::communication, dtype, elements * exchange.ranks);
  const Ticket gathered = rank.all_gather(exchange.group, own, all, options_of(rank, exchange));
  co_await rank.settle(gathered);
  rank.release(all);
  rank.release(own);
}

Program broadcast_all(Rank& rank, ObjectExchange exchange, DType dtype, int64_t elements) {
  const Slice sent = rank.allocate(Purpose::communication, dtype, elements);
  const Ticket arrived =
      rank.broadcast(exchange.group, sent, exchange.root, options_of(rank, exchange));
  co_await rank.settle(arrived);
  rank.release(sent);
}

Program scatter_all(Rank& rank, ObjectExchange exchange, DType dtype, int64_t elements) {
  const Slice own = rank.allocate(Purpose::communication, dtype, elements);
  const Slice all = of_all(rank, exchange, dtype, elements);
  const Ticket dealt =
      rank.scatter(exchange.group, all, own, exchange.root, options_of(rank, exchange));
  co_await rank.settle(dealt);
  release(rank, all);
  rank.release(own);
}

}  // namespace

Program broadcast_pickled(Rank& rank, ObjectExchange exchange, Bytes size) {
  co_await broadcast_all(rank, exchange, DType::int64, 1);
  co_await broadcast_all(rank, exchange, DType::uint8, size.count());
}

Program all_gather_pickled(Rank& rank, ObjectExchange exchange, Bytes largest) {
  co_await all_gather_all(rank, exchange, DType::int64, 1);
  co_await all_gather_all(rank, exchange, DType::uint8, largest.count());
}

Program gather_pickled(Rank& rank, ObjectExchange exchange, Bytes largest) {
  co_await all_gather_all(rank, exchange, DType::int64, 1);
  const Slice own = rank.allocate(Purpose::communication, DType::uint8, largest.count());
  const Slice all = of_all(rank, exchange, DType::uint8, largest.count());
  const Ticket gathered =
      rank.gather(exchange.group, own, all, exchange.root, options_of(rank, exchange));
  co_await rank.settle(gathered);
  release(rank, all);
  rank.release(own);
}

Program scatter_pickled(Rank& rank, ObjectExchange exchange, Bytes largest) {
  co_await broadcast_all(rank, exchange, DType::int64, 1);
  co_await scatter_all(rank, exchange, DType::uint8, largest.count());
  co_await scatter_all(rank, exchange, DType::int64, 1);
}

}  // namespace lockstep
