#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "sim/agenda.hpp"

namespace lockstep::sim {

/// Notices that threads beside the programs go round and round while every program waits, as
/// Bagua's go on averaging where a rank has lost the message that would end them: no clock would
/// ever stop that.
class ThreadWatch {
 public:
  /// A program, not a thread beside it, has gone on.
  void program_goes_on() {
    events_ = 0;
    pending_until_.reset();
  }
  /// Another event of a world of so many ranks has been handled. True: so many that the threads of
  /// all ranks could have told each other of a round many times over, twice, and everything that
  /// was pending then has happened, without any program going on. `work_ended`: whether something
  /// that one has submitted has ended since it was reset, as it is here.
  bool is_endless(const Agenda& agenda, uint64_t ranks, bool& work_ended) {
    if (++events_ < fewest || events_ < fewest + each_pair * ranks * ranks) [[likely]] {
      return false;
    }
    events_ = 0;
    if (std::exchange(work_ended, false)) {
      pending_until_.reset();
      return false;
    }
    if (!pending_until_) {
      pending_until_ = agenda.empty() ? agenda.now() : agenda.in_order().back().time;
    }
    return agenda.now() > *pending_until_;
  }

 private:
  static constexpr uint64_t fewest = 100'000;
  static constexpr uint64_t each_pair = 256;

  uint64_t events_ = 0;
  std::optional<Time> pending_until_;
};

}  // namespace lockstep::sim
