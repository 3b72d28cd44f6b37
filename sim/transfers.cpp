// Transfers over links that may be shared, and copies between the devices of one rank.
#include "sim/engine.hpp"

namespace lockstep::sim {

TransferPlan Engine::plan_of(const Transfer& transfer) {
  CommunicationCost& cost = *simulation_.communication;
  const Part& part = parts_[transfer.first];
  const auto rank = static_cast<int32_t>(ranks[part.rank].place.rank.value);
  if (transfer.collective) {
    const Communicator& communicator =
        communicators_[ranks[part.rank].groups[part.op.group.value].communicator];
    return cost.collective(
        {part.op.kind, part.op.bytes, members_of(communicator), communicator.key, part.op.peer});
  }
  if (transfer.second != no_index) {
    return cost.point_to_point(rank, number_of(parts_[transfer.second].rank), part.op.bytes);
  }
  const OpLists& lists = part.op.list();
  const BufferTable& buffers = *ranks[part.rank].buffers;
  const DeviceId from =
      lists.reads.empty() ? host_device : buffers.spec(lists.reads[0].buffer).device;
  const DeviceId to =
      lists.writes.empty() ? part.op.stream.device() : buffers.spec(lists.writes[0].buffer).device;
  return cost.copy(rank, from, to, part.op.bytes);
}

// Whether other ranks of the same classes transfer as much among themselves.
bool Engine::stands_for_others(const Transfer& transfer) {
  const Part& part = parts_[transfer.first];
  const RankState& rank = ranks[part.rank];
  return rank.stands_for > 1 &&
         (!transfer.collective || rank.groups[part.op.group.value].is_of_neighbours);
}

// Planned at once, except where a link's latency may change until it starts.
void Engine::begin_transfer(Time start, uint32_t first, uint32_t second, bool collective) {
  Transfer transfer{{}, start, first, second, collective, false};
  if (!latencies_change_ || start <= now_) {
    transfer.plan = plan_of(transfer);
    transfer.plan.stands_for_others = stands_for_others(transfer);
    transfer.planned = true;
    strike(transfer.plan);
    const TransferPlan& plan = transfer.plan;
    if (plan.links == nullptr || plan.links->empty() || plan.volume == Bytes{}) {
      end_transfer(transfer, start + plan.latency);
      return;
    }
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

void Engine::start_transfer(uint32_t index) {
  const Transfer& transfer = transfers_[index];
  if (!transfer.planned) {
    free_transfers_.push_back(index);
    begin_transfer(transfer.start, transfer.first, transfer.second, transfer.collective);
    return;
  }
  strike(transfer.plan);
  const uint32_t flow = flows_.start(now_, transfer.plan, forecasts_);
  if (transfer_of_flow_.size() <= flow) {
    transfer_of_flow_.resize(flow + 1);
  }
  transfer_of_flow_[flow] = index;
  push_forecasts();
  if (options_.classes != nullptr && flows_.is_shared_unevenly(flow)) {
    ranks_differ_ = "ranks that do the same share links unequally";
  }
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
