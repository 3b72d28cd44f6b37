#include "model/strategy/exchange/object_broadcast.hpp"

namespace lockstep {

Program broadcast_pickled(Rank& rank, GroupId group, Bytes size, int32_t root, SiteId site) {
  const CommunicationOptions options{
      communication_stream, {rank.event({compute_stream, {}, site})}, site};
  const Slice length = rank.allocate(Purpose::communication, DType::int64, 1);
  const Ticket told = rank.broadcast(group, length, root, options);
  co_await rank.settle(told);
  rank.release(length);
  const Slice object = rank.allocate(Purpose::communication, DType::uint8, size.count());
  const Ticket sent = rank.broadcast(group, object, root, options);
  co_await rank.settle(sent);
  rank.release(object);
}

}  // namespace lockstep
