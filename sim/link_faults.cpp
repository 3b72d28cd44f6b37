#include "sim/link_faults.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::sim {

LinkFaults::LinkFaults(const std::vector<LinkFault>& faults, CommunicationCost& cost,
                       SharedLinks& links, Agenda& agenda)
    : faults_(faults), cost_(cost), links_(links), agenda_(agenda) {}

void LinkFaults::begin() {
  progress_.assign(faults_.size(), {});
  change_latencies_ =
      std::ranges::any_of(faults_, [](const LinkFault& fault) { return fault.latency != Time{}; });
  for (uint32_t fault = 0; fault < faults_.size(); ++fault) {
    if (faults_[fault].at.is_start()) {
      change(fault, true);
    } else if (faults_[fault].at.kind == Instant::Kind::time) {
      progress_[fault].state = State::scheduled;
      put(fault, faults_[fault].at.time, true);
    }
  }
}

void LinkFaults::put(uint32_t index, Time due, bool begins) {
  progress_[index].due = due;
  agenda_.push(due, begins ? Agenda::Kind::link_slow : Agenda::Kind::link_free, index);
}

void LinkFaults::come_earlier(Time by) {
  for (uint32_t fault = 0; fault < progress_.size(); ++fault) {
    const Progress& progress = progress_[fault];
    const bool is_active = progress.state == State::active;
    const bool comes =
        progress.state == State::scheduled || (is_active && progress.due != Time::max());
    if (comes && progress.due >= agenda_.now() + by) {
      put(fault, progress.due - by, !is_active);
    }
  }
}

void LinkFaults::reached(const Position& position, Time host) {
  for (uint32_t fault = 0; fault < progress_.size(); ++fault) {
    if (progress_[fault].state == State::waiting && faults_[fault].at.has_come(position, host)) {
      progress_[fault].state = State::scheduled;
      put(fault, host, true);
    }
  }
}

void LinkFaults::change(uint32_t index, bool begins) {
  Progress& progress = progress_[index];
  const State before = begins ? State::scheduled : State::active;
  const bool from_start = begins && progress.state == State::waiting;
  if (!from_start && (progress.state != before || progress.due != agenda_.now())) {
    return;  // it was put earlier since
  }
  const LinkFault& fault = faults_[index];
  progress.state = begins ? State::active : State::over;
  progress.due = Time::max();
  active_ += begins ? 1 : -1;
  double left = 1;
  for (size_t other = 0; other < progress_.size(); ++other) {
    const LinkFault& same = faults_[other];
    if (same.link == fault.link && progress_[other].state == State::active) {
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
    put(index, agenda_.now() + fault.duration, false);
  }
}

void LinkFaults::strike(const TransferPlan& plan) {
  if (active_ == 0 || plan.links == nullptr) [[likely]] {
    return;
  }
  for (size_t index = 0; index < progress_.size(); ++index) {
    const LinkFault& fault = faults_[index];
    if (progress_[index].state == State::active &&
        std::ranges::find(*plan.links, fault.link) != plan.links->end()) {
      struck_.insert(fault.number);
    }
  }
}

}  // namespace lockstep::sim
