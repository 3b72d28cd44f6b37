#include "rehearsal/findings/known_differences.hpp"

#include <algorithm>

namespace lockstep::cli {

void tell_known_differences(const OneRun& run, Finding& finding) {
  std::vector<KnownDifference> told;
  for (const RankLog& rank : run.preparation.log->ranks) {
    for (const KnownDifference& known : rank.known_differences) {
      if (std::ranges::find(told, known) == told.end()) {
        told.push_back(known);
      }
    }
  }
  if (told.empty()) {
    return;
  }
  std::vector<std::string> fix;
  for (const KnownDifference& known : told) {
    finding.follows.push_back(known.cause);
    if (!known.remedy.empty() && std::ranges::find(fix, known.remedy) == fix.end()) {
      fix.push_back(known.remedy);
    }
  }
  finding.fix = fix.empty() ? finding.fix : fix;
}

}  // namespace lockstep::cli
