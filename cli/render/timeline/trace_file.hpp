#pragma once

#include <cstdint>
#include <string>

#include "model/core/units.hpp"
#include "rehearsal/run/output.hpp"

namespace lockstep::cli {

/// A time in whole nanoseconds, rounded down: what a trace keeps of it.
int64_t nanoseconds(Time time);
/// "12.345": the microseconds of so many nanoseconds.
std::string microseconds(int64_t nanoseconds);
/// A JSON string with its quotes; bytes that are no UTF-8 are replaced.
std::string quoted(const std::string& text);

/// A file of trace events, written in pieces and bounded. All throw OutputError.
class TraceFile {
 public:
  static constexpr int64_t most_events = 1'000'000;

  explicit TraceFile(const std::string& path);
  /// One event, by its fields without the braces; left out when there is no room.
  void event(const std::string& fields);
  /// The file appears under its name.
  void commit();

  int64_t room() const { return most_events - events_; }
  int64_t left_out() const { return left_out_; }
  void leave_out(int64_t events) { left_out_ += events; }

 private:
  void flush();

  AtomicFile file_;
  std::string text_;
  int64_t events_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace lockstep::cli
