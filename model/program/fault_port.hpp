#pragma once

#include <exception>
#include <set>
#include <string>
#include <vector>

#include "model/core/instant.hpp"
#include "model/program/decorators.hpp"

namespace lockstep {

/// A fault of one rank that its own port can inject, in every world.
struct PlannedFault {
  enum class Kind : uint8_t {
    lost_message,     ///< what the call would have sent is lost; the rank itself continues
    corrupted_value,  ///< what the call sends changes its sign first
    exception,
    out_of_memory,
    lost_rank,
    slow_data,
    termination,  ///< a SIGTERM that the program answers itself
  };
  /// `submission` of what strikes where the program stands and not at a submission.
  static constexpr int64_t at_position = -1;

  Kind kind = Kind::lost_message;
  /// Counts submissions since `at`, from 0. For lost_message and corrupted_value only those
  /// count that they can strike: that send a message, that send data.
  int64_t submission = 0;
  SiteId site{};  ///< that the rank's end names; none: that of the operation
  Instant at{};
  std::string hook{};   ///< of at_position: strikes when it begins; empty: once `at` has come
  double slowdown = 1;  ///< of slow_data
  Time duration = Time::max();  ///< of slow_data
  int32_t number = 0;           ///< the caller's own, for FaultPort::struck
};

/// Thrown by a lost rank: its lanes end without a word.
class RankLost final : public std::exception {
 public:
  const char* what() const noexcept override { return "the rank was lost"; }
};

/// The time on a rank's host. A simulated world has it; a real one does not.
class HostTime {
 public:
  virtual ~HostTime() = default;
  virtual Time now() const = 0;
};

class FaultPort final : public PortDecorator {
 public:
  /// Without `host` (null), faults may begin at the start, at a step or at an epoch.
  FaultPort(Port& inner, std::vector<PlannedFault> faults, const HostTime* host = nullptr);
  Ticket submit(std::span<const Op> ops) override;
  Port& entrance_for(OpKind kind) override;
  ProcessSignal reached(const Position& position) override;
  /// A fault that counts submissions, and a signal that the program has still to answer, keep what
  /// comes next from repeating what came before.
  PeriodsLeftOut begins_period(const PeriodStart& start) override;
  void follow_periods(PeriodFollower* follower) override;

  /// Numbers of the faults that took effect.
  std::set<int32_t> struck() const;

 private:
  struct Entry {
    PlannedFault fault;
    int64_t seen = 0;  ///< submissions that count, since it began
    bool begun = false;
    Time since{};
    bool struck = false;
  };
  Time now() const { return host_ == nullptr ? Time{} : host_->now(); }
  void begin_due();
  static bool counts_submissions(const Entry& entry);
  bool counts(const PlannedFault& fault, std::span<const Op> ops) const;
  bool is_due(Entry& entry, std::span<const Op> ops) const;
  bool sends_data(const Op& op) const;
  void corrupt(std::span<const Op> ops);
  Ticket submit_struck(std::span<const Op> ops);
  Ticket submit_without_messages(std::span<const Op> ops);
  [[noreturn]] void end_program(Entry& entry, SiteId otherwise);

  std::vector<Entry> entries_;
  const HostTime* host_;
  Position position_;
};

}  // namespace lockstep
