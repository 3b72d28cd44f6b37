#pragma once

#include <array>
#include <optional>
#include <vector>

#include "cli/render/timeline/span.hpp"
#include "model/program/run.hpp"

namespace lockstep::cli {

/// Follows the clock of one host thread through its rows: when it was in which hook and statement
/// of the user's program, and how long it waited for what.
class HostSpans {
 public:
  HostSpans(const Journal& journal, int32_t rank, int32_t lane);

  /// The next row.
  void add(const Row& row);
  /// No row follows. `waiting`: the thread waits forever for these; null: it does not.
  void end(const WaitingLane* waiting);
  /// What took so long was not simulated.
  void leave_out(int64_t steps, Time time);
  /// The clock of the thread, when it submitted the last row.
  Time clock() const { return clock_; }
  /// What is over since the last call.
  std::vector<Span> take() { return std::exchange(over_, {}); }

 private:
  static constexpr size_t remembered = 1024;

  void submit(const Row& row);
  void choose(const Row& row);
  void settle(const Row& row);
  void end_wait();
  void enter(SiteId site);
  void leave_hook(Time finish);
  void leave_statement();
  void begin_statement(const Row& row, Time start, Time finish);
  Span span(Span::Kind kind, const Row& row, Time start, Time finish) const;
  Row awaited(Ticket ticket) const;
  bool awaits_statement(Ticket ticket) const;
  bool continues_statement(const Row& row) const;

  const Journal& journal_;
  const LaneJournal& rows_;
  int32_t rank_;
  LaneId lane_;
  Time clock_{};
  std::vector<Span> over_;
  std::optional<Span> hook_;
  std::optional<Span> statement_;   ///< the last, until something else is submitted
  uint32_t last_of_statement_ = 0;  ///< sequence of the last mark or operation of it
  std::array<Row, remembered> submitted_{};
  // The wait whose rows are being read.
  std::vector<Ticket> waits_;
  bool until_any_ = false;
};

}  // namespace lockstep::cli
