#include "tests/unit/cli/render/timeline/trace_rules.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "cli/render/timeline/timeline.hpp"

namespace lockstep::test {

using cli::Json;

namespace {

constexpr int64_t forever = std::numeric_limits<int64_t>::max();

struct Bounds {
  int64_t begin = 0;
  int64_t end = 0;
};

int64_t whole_ns(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

/// One track of one rank.
class Track {
 public:
  void add(const Json& event, std::vector<std::string>& broken) {
    const bool open = event.at("ph") == "B";
    const Bounds slice{whole_ns(event.at("ts")),
                       open ? forever : whole_ns(event.at("ts")) + whole_ns(event.at("dur"))};
    if (slice.begin < last_) {
      broken.push_back("times go back: " + event.dump());
    }
    last_ = slice.begin;
    while (!stack_.empty() && stack_.back().end <= slice.begin) {
      stack_.pop_back();
    }
    if (slice.end < slice.begin || (!stack_.empty() && slice.end > stack_.back().end)) {
      broken.push_back("does not nest: " + event.dump());
    }
    if (open != event.at("args").contains("hangs")) {
      broken.push_back("open and `hangs` differ: " + event.dump());
    }
    stack_.push_back(slice);
    all_.push_back(slice);
  }

  bool holds(int64_t at) const {
    for (const Bounds& slice : all_) {
      if (slice.begin <= at && (at < slice.end || slice.begin == slice.end)) {
        return true;
      }
    }
    return false;
  }

 private:
  int64_t last_ = 0;
  std::vector<Bounds> stack_;
  std::vector<Bounds> all_;
};

}  // namespace

Json trace_of(const cli::Rehearsal& rehearsal) {
  const auto path = std::filesystem::temp_directory_path() / "lockstep-timeline-test.json";
  cli::write_timeline(rehearsal, path.string());
  std::ifstream file(path, std::ios::binary);
  Json trace = Json::parse(file);
  std::filesystem::remove(path);
  return std::move(trace.at("traceEvents"));
}

std::vector<std::string> broken_rules(const Json& events) {
  std::vector<std::string> broken;
  std::map<std::pair<int, int>, Track> tracks;
  std::map<int64_t, int> arrows;
  for (const Json& event : events) {
    const std::string phase = event.at("ph");
    if (phase != "X" && phase != "B") {
      continue;
    }
    tracks[{event.at("pid"), event.at("tid")}].add(event, broken);
    const Json& args = event.at("args");
    for (const char* figure : {"bytes", "elements", "flops", "call", "peer", "root"}) {
      if (args.contains(figure) && !args.at(figure).is_number_integer()) {
        broken.push_back(std::string(figure) + " is no number: " + event.dump());
      }
    }
    if (event.at("cat") == "compute" && args.contains("bytes")) {
      broken.push_back("the work of a kernel is called bytes: " + event.dump());
    }
  }
  for (const Json& event : events) {
    if (event.at("ph") == "s" || event.at("ph") == "f") {
      arrows[event.at("id")] += event.at("ph") == "s" ? 1 : -1;
      if (!tracks[{event.at("pid"), event.at("tid")}].holds(whole_ns(event.at("ts")))) {
        broken.push_back("an arrow outside of slices: " + event.dump());
      }
    }
  }
  for (const auto& [id, balance] : arrows) {
    if (balance != 0) {
      broken.push_back("an arrow with one end: " + std::to_string(id));
    }
  }
  return broken;
}

}  // namespace lockstep::test
