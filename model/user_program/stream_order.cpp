#include "model/user_program/stream_order.hpp"

#include <utility>

namespace lockstep {

std::vector<Ticket> StreamOrder::take_waits(StreamId on) {
  const auto found = waits_.find(on);
  if (found == waits_.end()) {
    return {};
  }
  std::vector<Ticket> waits = std::move(found->second);
  waits_.erase(found);
  return waits;
}

std::vector<Ticket> StreamOrder::take_waits_after_compute(StreamId on, SiteId site) {
  std::vector<Ticket> after = take_waits(on);
  after.push_back(tail_of_compute(site));
  return after;
}

void StreamOrder::submitted(StreamId on, Ticket ticket) {
  streams_.insert(on);
  if (on == compute_stream) {
    compute_tail_ = ticket;
    compute_tail_known_ = true;
  }
}

void StreamOrder::let_wait(StreamId later, StreamId earlier, Ticket ticket) {
  waits_[later].push_back(ticket);
  tensors_.ordered(later, earlier, ticket);
}

Ticket StreamOrder::tail_of_compute(SiteId site) {
  if (!compute_tail_known_ || waits_.count(compute_stream) != 0) {
    const std::vector<Ticket> waits = take_waits(compute_stream);
    submitted(compute_stream, rank_.event({compute_stream, After(waits), site}));
  }
  return compute_tail_;
}

void StreamOrder::hand_over_compute() {
  if (waits_.count(compute_stream) != 0) {
    const std::vector<Ticket> waits = take_waits(compute_stream);
    submitted(compute_stream, rank_.event({compute_stream, After(waits), no_site}));
  }
  streams_.insert(compute_stream);
  compute_tail_known_ = false;
}

Program StreamOrder::settle(Ticket ticket, StreamId on) {
  const Settle settled = rank_.settle(ticket);
  co_await settled;
  tensors_.settled(on, ticket);
}

Program StreamOrder::synchronize(StreamId on, SiteId site) {
  const std::vector<Ticket> after = take_waits(on);
  const Ticket mark = rank_.event({on, After(after), site});
  submitted(on, mark);
  co_await settle(mark, on);
}

Program StreamOrder::synchronize_all() {
  streams_.insert(compute_stream);
  streams_.insert(communication_stream);
  std::vector<std::pair<StreamId, Ticket>> marks;
  for (const StreamId on : std::vector<StreamId>(streams_.begin(), streams_.end())) {
    const std::vector<Ticket> after = take_waits(on);
    marks.emplace_back(on, rank_.event({on, After(after), no_site}));
    submitted(on, marks.back().second);
  }
  for (const auto& [on, mark] : marks) {
    co_await settle(mark, on);
  }
}

void StreamOrder::release_exposed() {
  for (const StreamId home : tensors_.homes_of_exposed()) {
    if (waits_.count(home) != 0) {
      const std::vector<Ticket> after = take_waits(home);
      submitted(home, rank_.event({home, After(after), tensors_.site()}));
    }
  }
  tensors_.release_exposed();
}

}  // namespace lockstep
