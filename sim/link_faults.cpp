#include "sim/link_faults.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::sim {

LinkFaults::LinkFaults(const std::vector<LinkFault>& faults, CommunicationCost& cost,
                       SharedLinks& links, Agenda& agenda)
    : faults_(faults), cost_(cost), links_(links), agenda_(agenda) {}

void LinkFaults::begin() {
  states_.assign(faults_.size(), State::waiting);
  change_latencies_ =
      std::ranges::any_of(faults_, [](const LinkFault& fault) { return fault.latency != Time{}; });
  for (size_t fault = 0; fault < faults_.size(); ++fault) {
    if (faults_[fault].at.is_start()) {
      change(static_cast<uint32_t>(fault), true);
    } else if (faults_[fault].at.kind == Instant::Kind::time) {
      states_[fault] = State::scheduled;
      agenda_.push(faults_[fault].at.time, Agenda::Kind::link_slow, fault);
    }
  }
}

void LinkFaults::reached(const Position& position, Time host) {
  for (size_t fault = 0; fault < states_.size(); ++fault) {
    if (states_[fault] == State::waiting && faults_[fault].at.has_come(position, host)) {
      states_[fault] = State::scheduled;
      agenda_.push(host, Agenda::Kind::link_slow, fault);
    }
  }
}

void LinkFaults::change(uint32_t index, bool begins) {
  const LinkFault& fault = faults_[index];
  states_[index] = begins ? State::active : State::over;
  active_ += begins ? 1 : -1;
  double left = 1;
  for (size_t other = 0; other < states_.size(); ++other) {
    const LinkFault& same = faults_[other];
    if (same.link == fault.link && states_[other] == State::active) {
      left *= same.bandwidth;
    }
  }
  const BytesPerSecond full = cost_.link_capacities()[fault.link];
  const auto capacity = std::llround(left * static_cast<double>(full.count()));
  links_.set_capacity(fault.link, BytesPerSecond(std::max<int64_t>(1, capacity)));
  if (fault.latency != Time{}) {
    cost_.add_latency(fault.link, begins ? fault.latency : Time{} - fault.latency);
  }
  if (begins && links_.carries(fault.link)) {
    struck_.insert(fault.number);
  }
  if (begins && fault.duration < Time::max() - agenda_.now()) {
    agenda_.push(agenda_.now() + fault.duration, Agenda::Kind::link_free, index);
  }
}

void LinkFaults::strike(const TransferPlan& plan) {
  if (active_ == 0 || plan.links == nullptr) [[likely]] {
    return;
  }
  for (size_t index = 0; index < states_.size(); ++index) {
    const LinkFault& fault = faults_[index];
    if (states_[index] == State::active &&
        std::ranges::find(*plan.links, fault.link) != plan.links->end()) {
      struck_.insert(fault.number);
    }
  }
}

}  // namespace lockstep::sim
