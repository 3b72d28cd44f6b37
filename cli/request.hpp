#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

enum class World : uint8_t {
  simulated,
  threads,  ///< a thread a rank in this process, over Gloo
};
enum class Format : uint8_t { text, json, junit };

/// What the user asked for: one command with its options.
struct Request {
  std::string command;
  std::vector<std::string> arguments;  ///< files, folders, or what `explain` explains
  std::vector<std::string> set;
  std::optional<int64_t> seed;
  Format format = Format::text;
  std::string output;   ///< empty: standard output
  int jobs = 0;         ///< 0: as many as there are cores
  bool strict = false;  ///< warnings count as errors
  bool verbose = false;
  bool progress = false;  ///< shown also where standard error is no terminal
  std::string timeline;   ///< empty: none
  std::string junit;      ///< `test`: a report beside the table; empty: none
  std::optional<double> time_limit_s;
  World world = World::simulated;
  int64_t draw_faults = 0;  ///< of `verify`: how many, from the seed
};

}  // namespace lockstep::cli
