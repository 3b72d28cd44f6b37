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

// Or, where every rank is simulated, between any two.
bool Engine::is_between_neighbours(const Part& part) const {
  const RankClasses* const classes = options_.classes.get();
  return classes == nullptr ||
         (part.op.peer >= 0 && !options_.any_source && classes->is_first(part.op.peer) &&
          classes->are_neighbours(part.rank, classes->of(static_cast<size_t>(part.op.peer))));
}

Channel& Engine::channel(uint32_t communicator, int32_t source, int32_t destination, int32_t tag) {
  return channels_[channel_key(communicator, source, destination, tag)];
}

// Called at submission: the k-th send of a pair meets its k-th receive.
void Engine::post_message(uint32_t index) {
  Part& part = parts_[index];
  if (!is_between_neighbours(part)) {
    ranks_differ_ = "a message names its sender and receiver";
    return;
  }
  const int32_t self = number_of(part.rank);
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
    part.captured = std::make_unique<const Values>(rank.buffers->load(lists.reads[0]));
  }
  tell(rank, part.ticket, part.issue, part.ready, part.ready);
  close_part(rank, std::exchange(part.ticket, Ticket{}), part.ready);
}

// A receive from any source may take a message long after both were ready: never before now, or
// the clock would go back behind what has happened since.
void Engine::begin_message(uint32_t send, uint32_t receive) {
  const Part& from = parts_[send];
  const Part& to = parts_[receive];
  if (from.op.bytes != to.op.bytes) {
    return;  // the sizes do not fit: neither gets on
  }
  begin_transfer(std::max({from.ready, to.ready, now_}), send, receive, false);
}

void Engine::deliver(uint32_t send, uint32_t receive, Time start, Time finish) {
  const Part& from = parts_[send];
  const Part& to = parts_[receive];
  const OpLists& sent = from.op.list();
  const OpLists& received = to.op.list();
  if (!sent.reads.empty() && !received.writes.empty()) {
    Values values = from.ticket ? ranks[from.rank].buffers->load(sent.reads[0]) : *from.captured;
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

// The sends that this receive may take now, those that came first in front.
std::vector<uint32_t> Engine::candidates_of(uint32_t destination, const Part& receive) {
  const uint32_t communicator = ranks[destination].groups[receive.op.group.value].communicator;
  std::vector<uint32_t> candidates;
  for (const uint32_t index : unmatched_sends_[destination]) {
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
  std::stable_sort(candidates.begin(), candidates.end(),
                   [this](uint32_t a, uint32_t b) { return parts_[a].ready < parts_[b].ready; });
  return candidates;
}

// Which of so many ways this turn takes.
size_t Engine::take_source_choice(size_t ways) {
  const auto& choices = simulation_.any_source_choices;
  const size_t turn = any_source_turn_++;
  if (simulation_.any_source_alternatives != nullptr) {
    simulation_.any_source_alternatives->push_back(static_cast<uint32_t>(ways));
  }
  return turn < choices.size() ? choices[turn] % ways : 0;
}

void Engine::take_from_any_source(uint32_t destination, size_t place, uint32_t send) {
  auto& receives = any_source_receives_[destination];
  auto& sends = unmatched_sends_[destination];
  const uint32_t receive = receives[place];
  const uint32_t communicator =
      ranks[destination].groups[parts_[receive].op.group.value].communicator;
  receives.erase(receives.begin() + static_cast<std::ptrdiff_t>(place));
  sends.erase(std::find(sends.begin(), sends.end(), send));
  auto& queued = channel(communicator, static_cast<int32_t>(parts_[send].rank),
                         static_cast<int32_t>(destination), parts_[send].op.tag)
                     .sends;
  queued.erase(std::find(queued.begin(), queued.end(), send));
  parts_[send].partner = receive;
  parts_[receive].partner = send;
  begin_message(send, receive);
}

// An event at the time when a send to this rank, or its own open receive, became ready.
void Engine::match_any_source(uint32_t destination) {
  auto& receives = any_source_receives_[destination];
  for (size_t next = 0; next < receives.size();) {
    const Part& receive = parts_[receives[next]];
    const bool is_ready = receive.next == receives[next] && receive.ready <= now_;
    const std::vector<uint32_t> candidates =
        is_ready ? candidates_of(destination, receive) : std::vector<uint32_t>();
    if (candidates.empty()) {
      ++next;
      continue;
    }
    take_from_any_source(destination, next, candidates[take_source_choice(candidates.size())]);
  }
}

// The first open receive of this rank with sends that it may take and was not passed over with.
Engine::HeldReceive Engine::held_receive_of(uint32_t destination) {
  const auto& receives = any_source_receives_[destination];
  const auto& passed = passed_over_[destination];
  for (size_t place = 0; place < receives.size(); ++place) {
    const Part& receive = parts_[receives[place]];
    if (receive.next != receives[place] || receive.ready > now_) {
      continue;
    }
    std::vector<uint32_t> candidates = candidates_of(destination, receive);
    std::erase_if(candidates, [&](uint32_t send) {
      return passed.contains({send, parts_[send].issue});
    });
    if (!candidates.empty()) {
      return {place, std::move(candidates)};
    }
  }
  return {};
}

// Nothing else can happen. The first of the ranks whose receives may take a message takes one; or
// another goes first, and then this one waits until it may take a message that was not here yet:
// with those that were, it would do what it does in the way where it goes first (sleep sets:
// Godefroid 1996). False where no receive may take anything.
bool Engine::match_held_receiver() {
  while (!held_receivers_.empty()) {
    const uint32_t destination = held_receivers_.extract(held_receivers_.begin()).value();
    const HeldReceive held = held_receive_of(destination);
    if (held.candidates.empty()) {
      continue;
    }
    const bool another =
        std::any_of(held_receivers_.begin(), held_receivers_.end(),
                    [this](uint32_t other) { return !held_receive_of(other).candidates.empty(); });
    const size_t way = take_source_choice(held.candidates.size() + (another ? 1 : 0));
    if (way == held.candidates.size()) {
      for (const uint32_t send : held.candidates) {
        passed_over_[destination].insert({send, parts_[send].issue});
      }
      continue;
    }
    passed_over_.erase(destination);
    take_from_any_source(destination, held.place, held.candidates[way]);
    held_receivers_.insert(destination);
    return true;
  }
  const bool repeats = std::any_of(passed_over_.begin(), passed_over_.end(),
                                   [](const auto& entry) { return !entry.second.empty(); });
  if (repeats && simulation_.any_source_alternatives != nullptr) {
    simulation_.any_source_alternatives->push_back(0);
  }
  return false;
}

}  // namespace lockstep::sim
