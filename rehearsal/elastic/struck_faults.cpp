#include "rehearsal/elastic/struck_faults.hpp"

namespace lockstep::cli {

Struck struck_faults(const OneRun& run) {
  Struck struck = run.result.struck_faults;
  for (const auto& [rank, planned] : run.preparation.options.faults) {
    const PlannedFault* first = nullptr;
    for (const PlannedFault& fault : planned) {
      const bool is_earlier = first == nullptr || fault.at.count < first->at.count;
      first = fault.kind == PlannedFault::Kind::lost_rank && is_earlier ? &fault : first;
    }
    const bool is_lost = run.result.ends[static_cast<size_t>(rank)].kind == RankEnd::Kind::lost;
    if (is_real(run.world) && is_lost && first != nullptr) {
      struck.emplace(first->number, rank);
    }
  }
  return struck;
}

}  // namespace lockstep::cli
