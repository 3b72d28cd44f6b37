// Format: "Trace Event Format" of the Chromium project, the JSON form with `traceEvents`.
#include "cli/render/timeline/trace_file.hpp"

#include <fmt/format.h>

#include "cli/render/json.hpp"

namespace lockstep::cli {

namespace {
constexpr size_t buffer_bytes = size_t{1} << 20;
}

int64_t nanoseconds(Time time) { return time.count() / 1000; }

// All picoseconds would be six digits; viewers keep three.
std::string microseconds(int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

TraceFile::TraceFile(const std::string& path)
    : file_(path), text_("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[") {}

void TraceFile::flush() {
  file_.write(text_);
  text_.clear();
}

void TraceFile::event(const std::string& fields) {
  if (events_ >= most_events) {
    ++left_out_;
    return;
  }
  text_ += (events_++ == 0 ? "\n{" : ",\n{") + fields + "}";
  if (text_.size() >= buffer_bytes) {
    flush();
  }
}

void TraceFile::commit() {
  text_ += "\n]}\n";
  flush();
  file_.commit();
}

}  // namespace lockstep::cli
