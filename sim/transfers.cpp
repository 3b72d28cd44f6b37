// Transfers over links that may be shared, and copies between the devices of one rank.
#include "sim/engine.hpp"

namespace lockstep::sim {

void Engine::begin_transfer(const TransferPlan& plan, Time start, uint32_t first, uint32_t second,
                            bool collective) {
  const Transfer transfer{plan, start, first, second, collective};
  strike(plan);
  if (plan.links == nullptr || plan.links->empty() || plan.volume == Bytes{}) {
    end_transfer(transfer, start + plan.latency);
    return;
  }
  uint32_t index = 0;
  if (free_transfers_.empty()) {
    index = static_cast<uint32_t>(transfers_.size());
    transfers_.push_back(transfer);
  } else {
    index = free_transfers_.back();
    free_transfers_.pop_back();
    transfers_[index] = transfer;
  }
  push(start, EventKind::flow_start, index);
}

void Engine::end_transfer(const Transfer& transfer, Time finish) {
  if (transfer.collective) {
    complete_call(transfer.first, transfer.start, finish);
  } else if (transfer.second != no_index) {
    deliver(transfer.first, transfer.second, transfer.start, finish);
  } else {
    const Part& part = parts_[transfer.first];
    const OpLists& lists = part.op.list();
    if (!lists.reads.empty() && !lists.writes.empty()) {
      BufferTable& buffers = *ranks[part.rank].buffers;
      buffers.store(lists.writes[0], buffers.load(lists.reads[0]));
    }
    part_done(transfer.first, transfer.start, finish);
  }
}

}  // namespace lockstep::sim
