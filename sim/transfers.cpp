#include "sim/transfers.hpp"

namespace lockstep::sim {

TransferPlan Transfers::plan_of(const Transfer& transfer) {
  const Part& part = world_.in_flight[transfer.first];
  const RankState& rank = world_.ranks[part.rank];
  const auto number = static_cast<int32_t>(rank.place.rank.value);
  if (transfer.is_collective) {
    const Communicator& communicator = world_.communicators.of(rank, part);
    return world_.cost.collective({part.op.kind, part.op.bytes,
                                   world_.communicators.members_of(communicator), communicator.key,
                                   part.op.peer});
  }
  if (transfer.second != no_index) {
    const RankState& receiver = world_.ranks[world_.in_flight[transfer.second].rank];
    return world_.cost.point_to_point(number, static_cast<int32_t>(receiver.place.rank.value),
                                      part.op.bytes);
  }
  const OpLists& lists = part.op.list();
  const BufferTable& buffers = *rank.buffers;
  const DeviceId from =
      lists.reads.empty() ? host_device : buffers.spec(lists.reads[0].buffer).device;
  const DeviceId to =
      lists.writes.empty() ? part.op.stream.device() : buffers.spec(lists.writes[0].buffer).device;
  return world_.cost.copy(number, from, to, part.op.bytes);
}

// Whether other ranks of the same classes transfer as much among themselves.
bool Transfers::stands_for_others(const Transfer& transfer) {
  const Part& part = world_.in_flight[transfer.first];
  const RankState& rank = world_.ranks[part.rank];
  return rank.stands_for > 1 &&
         (!transfer.is_collective || rank.groups[part.op.group.value].is_of_neighbours);
}

// Planned at once, except where a link's latency may change until it starts.
std::optional<Time> Transfers::begin(const Transfer& transfer) {
  Planned planned{transfer, {}, false};
  if (!world_.faults.change_latencies() || transfer.start <= world_.agenda.now()) {
    planned.plan = plan_of(transfer);
    planned.plan.stands_for_others = stands_for_others(transfer);
    planned.is_planned = true;
    world_.faults.strike(planned.plan);
    const TransferPlan& plan = planned.plan;
    if (plan.links == nullptr || plan.links->empty() || plan.volume == Bytes{}) {
      return transfer.start + plan.latency;
    }
  }
  put_on_agenda(planned);
  return std::nullopt;
}

void Transfers::put_on_agenda(const Planned& planned) {
  uint32_t index = 0;
  if (free_.empty()) {
    index = static_cast<uint32_t>(planned_.size());
    planned_.push_back(planned);
  } else {
    index = free_.back();
    free_.pop_back();
    planned_[index] = planned;
  }
  world_.agenda.push(planned.transfer.start, Agenda::Kind::flow_start, index);
}

std::optional<Transfers::Ended> Transfers::start(uint32_t index) {
  const Planned& planned = planned_[index];
  if (!planned.is_planned) {
    free_.push_back(index);
    const Transfer transfer = planned.transfer;
    const std::optional<Time> finish = begin(transfer);
    return finish ? std::optional(Ended{transfer, *finish}) : std::nullopt;
  }
  world_.faults.strike(planned.plan);
  const uint32_t flow = world_.links.start(planned.plan);
  if (of_flow_.size() <= flow) {
    of_flow_.resize(flow + 1);
  }
  of_flow_[flow] = index;
  if (world_.in_classes && world_.links.is_shared_unevenly(flow)) {
    world_.ranks_differ = "ranks that do the same share links unequally";
  }
  return std::nullopt;
}

std::optional<Transfers::Ended> Transfers::finish_flow(uint32_t flow, uint32_t generation) {
  if (!world_.links.finish(flow, generation)) {
    return std::nullopt;
  }
  const uint32_t index = of_flow_[flow];
  free_.push_back(index);
  const Planned& planned = planned_[index];
  return Ended{planned.transfer, world_.agenda.now() + planned.plan.latency};
}

}  // namespace lockstep::sim
