#include "sim/any_source.hpp"

#include <algorithm>

namespace lockstep::sim {

AnySource::AnySource(const SimulationOptions& simulation, std::vector<RankState>& ranks,
                     InFlight& in_flight, Agenda& agenda, Channels& channels)
    : simulation_(simulation),
      ranks_(ranks),
      in_flight_(in_flight),
      agenda_(agenda),
      channels_(channels) {}

void AnySource::post_receive(uint32_t receive) {
  receives_[in_flight_[receive].rank].push_back(receive);
}

void AnySource::receive_is_ready(uint32_t receive) {
  const Part& part = in_flight_[receive];
  agenda_.push(std::max(part.ready, agenda_.now()), Agenda::Kind::any_source, part.rank);
}

void AnySource::send_is_ready(uint32_t send) {
  const Part& part = in_flight_[send];
  const auto destination = static_cast<uint32_t>(part.op.peer);
  unmatched_sends_[destination].push_back(send);
  agenda_.push(std::max(part.ready, agenda_.now()), Agenda::Kind::any_source, destination);
}

void AnySource::forget_send(uint32_t destination, uint32_t send) {
  std::erase(unmatched_sends_[destination], send);
}

bool AnySource::is_empty() const {
  const auto is_none = [](const auto& entry) { return entry.second.empty(); };
  return std::ranges::all_of(receives_, is_none) && std::ranges::all_of(unmatched_sends_, is_none);
}

Channel& AnySource::channel(uint32_t communicator, uint32_t destination, const Part& send) {
  return channels_.of(communicator, static_cast<int32_t>(send.rank),
                      static_cast<int32_t>(destination), send.op.tag);
}

// The sends that this receive may take now, those that came first in front.
std::vector<uint32_t> AnySource::candidates_of(uint32_t destination, const Part& receive) {
  const uint32_t communicator = ranks_[destination].groups[receive.op.group.value].communicator;
  std::vector<uint32_t> candidates;
  for (const uint32_t index : unmatched_sends_[destination]) {
    const Part& send = in_flight_[index];
    const bool same_group =
        ranks_[send.rank].groups[send.op.group.value].communicator == communicator;
    if (send.partner != no_index || send.ready > agenda_.now() || send.op.tag != receive.op.tag ||
        send.op.bytes != receive.op.bytes || !same_group) {
      continue;
    }
    // Messages of one sender and tag keep their order.
    if (channel(communicator, destination, send).sends.front() == index) {
      candidates.push_back(index);
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [this](uint32_t a, uint32_t b) {
    return in_flight_[a].ready < in_flight_[b].ready;
  });
  return candidates;
}

// Which of so many ways this turn takes.
size_t AnySource::take_choice(size_t ways) {
  const auto& choices = simulation_.any_source_choices;
  const size_t turn = turn_++;
  if (simulation_.any_source_alternatives != nullptr) {
    simulation_.any_source_alternatives->push_back(static_cast<uint32_t>(ways));
  }
  return turn < choices.size() ? choices[turn] % ways : 0;
}

AnySource::Match AnySource::take(uint32_t destination, size_t place, uint32_t send) {
  auto& receives = receives_[destination];
  auto& sends = unmatched_sends_[destination];
  const uint32_t receive = receives[place];
  const uint32_t communicator =
      ranks_[destination].groups[in_flight_[receive].op.group.value].communicator;
  receives.erase(receives.begin() + static_cast<std::ptrdiff_t>(place));
  sends.erase(std::find(sends.begin(), sends.end(), send));
  channel(communicator, destination, in_flight_[send]).sends.erase(send);
  in_flight_[send].partner = receive;
  in_flight_[receive].partner = send;
  return {send, receive};
}

std::vector<AnySource::Match> AnySource::match(uint32_t destination) {
  std::vector<Match> matches;
  auto& receives = receives_[destination];
  for (size_t next = 0; next < receives.size();) {
    const Part& receive = in_flight_[receives[next]];
    const bool is_ready = receive.next == receives[next] && receive.ready <= agenda_.now();
    const std::vector<uint32_t> candidates =
        is_ready ? candidates_of(destination, receive) : std::vector<uint32_t>();
    if (candidates.empty()) {
      ++next;
      continue;
    }
    matches.push_back(take(destination, next, candidates[take_choice(candidates.size())]));
  }
  return matches;
}

// The first open receive of this rank with sends that it may take and was not passed over with.
AnySource::HeldReceive AnySource::held_receive_of(uint32_t destination) {
  const auto& receives = receives_[destination];
  const auto& passed = passed_over_[destination];
  for (size_t place = 0; place < receives.size(); ++place) {
    const Part& receive = in_flight_[receives[place]];
    if (receive.next != receives[place] || receive.ready > agenda_.now()) {
      continue;
    }
    std::vector<uint32_t> candidates = candidates_of(destination, receive);
    std::erase_if(candidates, [&](uint32_t send) {
      return passed.contains({send, in_flight_[send].issue});
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
// Godefroid 1996).
std::optional<AnySource::Match> AnySource::match_held() {
  while (!held_.empty()) {
    const uint32_t destination = held_.extract(held_.begin()).value();
    const HeldReceive held = held_receive_of(destination);
    if (held.candidates.empty()) {
      continue;
    }
    const bool another = std::any_of(held_.begin(), held_.end(), [this](uint32_t other) {
      return !held_receive_of(other).candidates.empty();
    });
    const size_t way = take_choice(held.candidates.size() + (another ? 1 : 0));
    if (way == held.candidates.size()) {
      for (const uint32_t send : held.candidates) {
        passed_over_[destination].insert({send, in_flight_[send].issue});
      }
      continue;
    }
    passed_over_.erase(destination);
    held_.insert(destination);
    return take(destination, held.place, held.candidates[way]);
  }
  const bool repeats = std::any_of(passed_over_.begin(), passed_over_.end(),
                                   [](const auto& entry) { return !entry.second.empty(); });
  if (repeats && simulation_.any_source_alternatives != nullptr) {
    simulation_.any_source_alternatives->push_back(0);
  }
  return std::nullopt;
}

}  // namespace lockstep::sim
