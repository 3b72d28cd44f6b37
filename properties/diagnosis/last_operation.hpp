#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/program/run.hpp"

namespace lockstep {

/// How far a rank came.
struct LastOperation {
  int64_t count = 0;  ///< of submissions, over all lanes; parts of a grouped call are one
  std::string name;   ///< of the main program's last one: "all_reduce", "layer_forward"
  SiteId site{};
};
LastOperation last_operation(const Journal& journal, int32_t rank);

/// "raised 'no such file'": how a rank ended with an exception. The message may be text of the
/// scenario: its lines are joined, so that no message breaks the layout of a finding.
std::string raised_text(std::string_view message);

/// "was lost after its operation 7, all_reduce": `call: 8` of a lost_rank repeats it. Of several
/// `ranks`, which all did the same: "were lost after their operation 7, all_reduce".
std::string lost_text(const RunResult& run, int32_t rank, int64_t ranks = 1);

}  // namespace lockstep
