// Point-to-point messages of the simulated world: matched per ordered pair and tag in issue order.
#include <algorithm>

#include "sim/engine.hpp"

namespace lockstep::sim {

namespace {

// Channels are looked up by a mixed key; ranks, tags and communicators are far from filling it.
uint64_t channel_key(uint32_t communicator, int32_t source, int32_t destination, int32_t tag) {
  uint64_t key = random_key(communicator, static_cast<uint64_t>(tag) & 0xffffffffu);
  return random_key(key, static_cast<uint64_t>(source) << 32 |
                             (static_cast<uint64_t>(destination) & 0xffffffffu));
}

}  // namespace

Channel& Engine::channel(uint32_t communicator, int32_t source, int32_t destination, int32_t tag) {
  return channels_[channel_key(communicator, source, destination, tag)];
}

// Called at submission: the k-th send of a pair meets its k-th receive.
void Engine::post_message(uint32_t index) {
  Part& part = parts_[index];
  const auto self = static_cast<int32_t>(part.rank);
  ensure(part.op.group.value < ranks[part.rank].groups.size(), "a group is used after it was made");
  const uint32_t communicator = ranks[part.rank].groups[part.op.group.value].communicator;
  if (part.op.kind == OpKind::recv && part.op.peer == any_rank) {
    if (!options_.any_source) {
      throw ProgramException(part.op.site, "NCCL has no receive from any source");
    }
    any_source_receives_[part.rank].push_back(index);
    return;
  }
  const bool sends = part.op.kind == OpKind::send;
  Channel& here = sends ? channel(communicator, self, part.op.peer, part.op.tag)
                        : channel(communicator, part.op.peer, self, part.op.tag);
  auto& waiting = sends ? here.receives : here.sends;
  if (waiting.empty()) {
    (sends ? here.sends : here.receives).push_back(index);
    return;
  }
  const uint32_t partner = waiting.front();
  waiting.pop_front();
  part.partner = partner;
  parts_[partner].partner = index;
  if (!sends && options_.any_source) {
    auto& unmatched = unmatched_sends_[part.rank];
    unmatched.erase(std::remove(unmatched.begin(), unmatched.end(), partner), unmatched.end());
  }
}

// Called when all dependencies of a send or a receive are known.
void Engine::message_ready(uint32_t index) {
  Part& part = parts_[index];
  part.next = index;  // marks it as ready
  if (part.op.kind == OpKind::send) {
    if (options_.eager_limit > Bytes{} && part.op.bytes <= options_.eager_limit) {
      leave_eagerly(part);
    }
    if (part.partner == no_index && options_.any_source) {
      const auto destination = static_cast<uint32_t>(part.op.peer);
      unmatched_sends_[destination].push_back(index);
      push(std::max(part.ready, now_), EventKind::any_source, destination);
    }
  } else if (part.op.peer == any_rank) {
    push(std::max(part.ready, now_), EventKind::any_source, part.rank);
    return;
  }
  if (part.partner != no_index && parts_[part.partner].next == part.partner) {
    const uint32_t partner = part.partner;
    if (part.op.kind == OpKind::send) {
      begin_message(index, partner);
    } else {
      begin_message(partner, index);
    }
  }
}

// An eager send returns before its receive is posted: the message waits at the receiver.
void Engine::leave_eagerly(Part& part) {
  RankState& rank = ranks[part.rank];
  const OpLists& lists = part.op.list();
  if (!lists.reads.empty()) {
    part.lists->captured = rank.buffers->load(lists.reads[0]);
  }
  tell(rank, part.ticket, part.issue, part.ready, part.ready);
  close_part(rank, std::exchange(part.ticket, Ticket{}), part.ready);
}

void Engine::begin_message(uint32_t send, uint32_t receive) {
  const Part& from = parts_[send];
  const Part& to = parts_[receive];
  if (from.op.bytes != to.op.bytes) {
    return;  // the sizes do not fit: neither gets on
  }
  begin_transfer(std::max(from.ready, to.ready), send, receive, false);
}

void Engine::deliver(uint32_t send, uint32_t receive, Time start, Time finish) {
  const Part& from = parts_[send];
  const Part& to = parts_[receive];
  const OpLists& sent = from.op.list();
  const OpLists& received = to.op.list();
  if (!sent.reads.empty() && !received.writes.empty()) {
    Values values =
        from.ticket ? ranks[from.rank].buffers->load(sent.reads[0]) : from.lists->captured;
    if (!values.empty() && values.dtype() != received.writes[0].dtype) {
      Values typed(received.writes[0].dtype, received.writes[0].elements);
      std::copy(values.bytes().begin(), values.bytes().end(), typed.bytes().begin());
      values = std::move(typed);
    }
    ranks[to.rank].buffers->store(received.writes[0], values);
  }
  if (to.op.peer == any_rank) {
    ranks[to.rank].lanes[to.ticket.lane.value]->tickets.told[to.ticket.sequence] = {
        Outcome::ok, RankId{from.rank}, from.op.bytes};
  }
  if (from.ticket) {
    part_done(send, start, finish);
  } else {
    forget_part(send);
  }
  part_done(receive, start, finish);
}

// An event at the time when a send to this rank, or its own open receive, became ready.
void Engine::match_any_source(uint32_t destination) {
  auto& receives = any_source_receives_[destination];
  auto& sends = unmatched_sends_[destination];
  for (size_t next = 0; next < receives.size();) {
    Part& receive = parts_[receives[next]];
    const uint32_t communicator = ranks[destination].groups[receive.op.group.value].communicator;
    std::vector<uint32_t> candidates;
    for (const uint32_t index : sends) {
      const Part& send = parts_[index];
      const bool same_group =
          ranks[send.rank].groups[send.op.group.value].communicator == communicator;
      if (send.partner != no_index || send.ready > now_ || send.op.tag != receive.op.tag ||
          send.op.bytes != receive.op.bytes || !same_group) {
        continue;
      }
      // Messages of one sender and tag keep their order.
      const auto& of_sender = channel(communicator, static_cast<int32_t>(send.rank),
                                      static_cast<int32_t>(destination), send.op.tag)
                                  .sends;
      if (of_sender.front() == index) {
        candidates.push_back(index);
      }
    }
    if (receive.next != receives[next] || receive.ready > now_ || candidates.empty()) {
      ++next;
      continue;
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [this](uint32_t a, uint32_t b) { return parts_[a].ready < parts_[b].ready; });
    const auto& choices = simulation_.any_source_choices;
    const size_t turn = any_source_turn_++;
    if (simulation_.any_source_alternatives != nullptr) {
      simulation_.any_source_alternatives->push_back(static_cast<uint32_t>(candidates.size()));
    }
    const uint32_t send = candidates[turn < choices.size() ? choices[turn] % candidates.size() : 0];
    const uint32_t matched = receives[next];
    receives.erase(receives.begin() + static_cast<std::ptrdiff_t>(next));
    sends.erase(std::find(sends.begin(), sends.end(), send));
    auto& queued = channel(communicator, static_cast<int32_t>(parts_[send].rank),
                           static_cast<int32_t>(destination), parts_[send].op.tag)
                       .sends;
    queued.erase(std::find(queued.begin(), queued.end(), send));
    parts_[send].partner = matched;
    receive.partner = send;
    begin_message(send, matched);
    if (simulation_.any_source_last) {
      held_receivers_.insert(destination);
      return;
    }
  }
}

}  // namespace lockstep::sim
