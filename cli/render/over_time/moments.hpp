#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cli/render/over_time/left_out_time.hpp"
#include "model/program/run.hpp"

namespace lockstep::cli {

/// What a moment of one rank is, seen from its device: the first of these that holds.
enum class Moment : uint8_t {
  working,      ///< a kernel computes or communicates
  checkpoint,   ///< the rank writes a checkpoint
  data,         ///< it loads, or waits for, a batch
  alone,        ///< its thread works while another rank waits
  host,         ///< its thread works
  copies,       ///< between host and device, or the drive
  other_ranks,  ///< a call waits for peers
  nothing,
};
inline constexpr size_t moment_count = 8;
/// "waiting for data", "one rank alone".
std::string_view phrase_of(Moment moment);
/// "data", "one_rank_alone": in JSON and columns.
std::string_view key_of(Moment moment);

/// How long each kind of moment lasted, and how much of it was evaluation.
struct MomentTimes {
  std::array<Time, moment_count> of{};
  Time evaluating{};

  Time operator[](Moment moment) const { return of[static_cast<size_t>(moment)]; }
  MomentTimes& operator+=(const MomentTimes& more);
  MomentTimes& operator-=(const MomentTimes& less);
  friend MomentTimes operator*(MomentTimes one, int64_t times);
};

/// The moments of one rank over the whole run. What a simulation has left out is known by the
/// period that it repeats, so that a question costs the same however long the run is.
class Moments {
 public:
  /// `others`: ranks that may wait for this one.
  Moments(const RunResult& run, int32_t rank, const std::vector<int32_t>& others);

  MomentTimes between(Time begin, Time end) const;
  /// As evaluations_of() lists them.
  const std::vector<std::pair<Time, Time>>& evaluations() const { return evaluations_; }
  const std::vector<LeftOutStretch>& stretches() const { return stretches_; }

 private:
  struct Mark {
    Time at{};
    MomentTimes before{};
    Moment moment = Moment::nothing;  ///< from here on
    bool evaluates = false;
  };

  MomentTimes until(Time moment) const;
  MomentTimes simulated_until(Time moment) const;

  std::vector<LeftOutStretch> stretches_;
  /// By stretch: until it begins, and of one of its periods.
  std::vector<std::pair<MomentTimes, MomentTimes>> of_stretches_;
  std::vector<Mark> marks_;
  std::vector<std::pair<Time, Time>> evaluations_;
};

}  // namespace lockstep::cli
