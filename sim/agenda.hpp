#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/core/units.hpp"
#include "sim/event_queue.hpp"

namespace lockstep::sim {

/// What time it is in the simulated world, what is going to happen there, and how long it lasts.
class Agenda {
 public:
  enum class Kind : uint8_t { lane, flow_start, flow_finish, any_source, link_slow, link_free };

  /// Something that happens: what `index` and `generation` mean depends on its kind.
  struct Entry {
    Time time{};
    Kind kind = Kind::lane;
    uint32_t index = 0;
    uint32_t generation = 0;  ///< the lowest bits of the one that it was pushed with

    bool is_of(uint32_t whole_generation) const {
      return (whole_generation & generation_mask) == generation;
    }
  };

  /// With a seed, the order of what happens at the same time is drawn, before a certain time.
  explicit Agenda(std::optional<uint64_t> tie_seed, Time drawn_before = Time::max())
      : drawn_before_(tie_seed ? drawn_before : Time{}), events_(tie_seed, drawn_before) {}

  /// Something that is pending, or still to come, may be in a drawn order.
  bool draws() const { return now_ < drawn_before_; }

  Time now() const { return now_; }
  /// When the last of what is known to end ends.
  Time latest() const { return latest_; }
  void lasts_until(Time time) { latest_ = std::max(latest_, time); }

  bool empty() const { return events_.empty(); }
  void push(Time time, Kind kind, uint64_t index, uint32_t generation = 0) {
    events_.push(time, target_of(kind, index, generation));
  }
  /// Behind all else that happens at the time.
  void push_last(Time time, Kind kind, uint64_t index, uint32_t generation = 0) {
    events_.push(time, target_of(kind, index, generation), true);
  }
  /// The earliest; from here on it is its time.
  Entry pop() {
    const Event event = events_.pop();
    now_ = event.time;
    return entry(event);
  }
  /// All that is pending, earliest first.
  std::vector<Entry> in_order() const {
    std::vector<Entry> entries;
    for (const Event& event : events_.in_order()) {
      entries.push_back(entry(event));
    }
    return entries;
  }

 private:
  static constexpr uint64_t generation_mask = (1u << 28) - 1;

  static uint64_t target_of(Kind kind, uint64_t index, uint32_t generation) {
    return static_cast<uint64_t>(kind) << 60 | (uint64_t{generation} & generation_mask) << 32 |
           index;
  }
  static Entry entry(const Event& event) {
    return {event.time, static_cast<Kind>(event.target >> 60), static_cast<uint32_t>(event.target),
            static_cast<uint32_t>(event.target >> 32 & generation_mask)};
  }

  Time drawn_before_;
  EventQueue events_;
  Time now_{};
  Time latest_{};
};

}  // namespace lockstep::sim
