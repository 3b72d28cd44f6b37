#pragma once

#include <string>
#include <vector>

#include "cli/render/json.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// Calls that follow one another on one group, from one place, with the same arguments.
struct ListedCalls {
  std::string group;      ///< "world", "ranks 0-3", "pair (ranks 0-3)"
  int64_t first = 0;      ///< its number on the group, from 1
  int64_t count = 1;      ///< how many such calls
  std::string operation;  ///< "all_reduce"
  std::string dtype;      ///< of an element; empty for a barrier
  int64_t elements = 0;
  std::string text;   ///< "all_reduce avg fp32 [25]"
  std::string place;  ///< "scenario.yaml:17:15", "ddp: all_reduce of a bucket"

  int64_t next() const { return first + count; }
};

/// The collectives of rank 0 by group, the first `most` entries of each; those that a simulation
/// left out have no entry, but count in the numbers. Empty without a journal, and beyond 4096
/// ranks.
std::vector<ListedCalls> listed_calls(const Rehearsal& rehearsal, size_t most);

/// For `-v`: a headline, and a line per entry.
std::string render_calls(const Rehearsal& rehearsal);
Json calls_json(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
