#include "model/strategy/data_parallel/device_copy.hpp"

namespace lockstep {

Ticket copy_between_devices(Rank& rank, const Slice& from, const Slice& to,
                            const CommunicationOptions& options) {
  OpLists lists;
  lists.after = options.after.tickets();
  if (from.buffer != no_buffer) {
    lists.reads = {&from, 1};
  }
  if (to.buffer != no_buffer) {
    lists.writes = {&to, 1};
  }
  Op op;
  op.kind = OpKind::copy;
  op.dtype = from.dtype;
  op.group = world_group;
  op.bytes = from.bytes();
  op.tag = between_devices;
  op.stream = options.on;
  op.site = options.site;
  op.lists = &lists;
  return rank.port().submit({&op, 1});
}

}  // namespace lockstep
