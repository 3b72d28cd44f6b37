#pragma once

#include <string>

namespace lockstep {

/// A place in a scenario file. Lines and columns count from 1; 0 means that there is none (a
/// default, or a value given on the command line, whose `file` then says so).
struct SourcePlace {
  std::string file;
  int line = 0;
  int column = 0;
  bool operator==(const SourcePlace&) const = default;
};

}  // namespace lockstep
