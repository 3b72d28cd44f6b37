// Links that become slow for a while, at a time or when a rank has come to a step or an epoch.
#include <algorithm>
#include <cmath>

#include "sim/engine.hpp"

namespace lockstep::sim {

void Engine::begin_link_faults() {
  const std::vector<LinkFault>& faults = simulation_.link_faults;
  link_fault_states_.assign(faults.size(), LinkFaultState::waiting);
  latencies_change_ =
      std::ranges::any_of(faults, [](const LinkFault& fault) { return fault.latency != Time{}; });
  for (size_t fault = 0; fault < faults.size(); ++fault) {
    if (faults[fault].at.is_start()) {
      handle_link(static_cast<uint32_t>(fault), true);
    } else if (faults[fault].at.kind == Instant::Kind::time) {
      link_fault_states_[fault] = LinkFaultState::scheduled;
      push(faults[fault].at.time, EventKind::link_slow, fault);
    }
  }
}

void Engine::reached(RankState& rank, const Position& position) {
  if (rank.running == nullptr) {
    return;  // being unwound
  }
  const Time host = rank.running->host;
  if (simulation_.observer != nullptr) {
    simulation_.observer->reached(rank.place.rank, position, host);
  }
  for (size_t fault = 0; fault < link_fault_states_.size(); ++fault) {
    if (link_fault_states_[fault] == LinkFaultState::waiting &&
        simulation_.link_faults[fault].at.has_come(position, host)) {
      link_fault_states_[fault] = LinkFaultState::scheduled;
      push(host, EventKind::link_slow, fault);
    }
  }
}

void Engine::handle_link(uint32_t index, bool begins) {
  const LinkFault& fault = simulation_.link_faults[index];
  link_fault_states_[index] = begins ? LinkFaultState::active : LinkFaultState::over;
  active_link_faults_ += begins ? 1 : -1;
  double left = 1;
  for (size_t other = 0; other < link_fault_states_.size(); ++other) {
    const LinkFault& same = simulation_.link_faults[other];
    if (same.link == fault.link && link_fault_states_[other] == LinkFaultState::active) {
      left *= same.bandwidth;
    }
  }
  const BytesPerSecond full = simulation_.communication->link_capacities()[fault.link];
  const auto capacity = std::llround(left * static_cast<double>(full.count()));
  flows_.set_capacity(now_, fault.link, BytesPerSecond(std::max<int64_t>(1, capacity)), forecasts_);
  push_forecasts();
  if (fault.latency != Time{}) {
    simulation_.communication->add_latency(fault.link,
                                           begins ? fault.latency : Time{} - fault.latency);
  }
  if (begins && flows_.carries(fault.link)) {
    struck_links_.insert(fault.number);
  }
  if (begins && fault.duration < Time::max() - now_) {
    push(now_ + fault.duration, EventKind::link_free, index);
  }
}

void Engine::strike(const TransferPlan& plan) {
  if (active_link_faults_ == 0 || plan.links == nullptr) [[likely]] {
    return;
  }
  for (size_t index = 0; index < link_fault_states_.size(); ++index) {
    const LinkFault& fault = simulation_.link_faults[index];
    if (link_fault_states_[index] == LinkFaultState::active &&
        std::ranges::find(*plan.links, fault.link) != plan.links->end()) {
      struck_links_.insert(fault.number);
    }
  }
}

}  // namespace lockstep::sim
