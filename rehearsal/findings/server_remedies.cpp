#include "rehearsal/findings/server_remedies.hpp"

#include <algorithm>

#include "model/strategy/server/server_sites.hpp"

namespace lockstep::cli {

namespace {

bool waits_at(const Finding& finding, std::string_view site) {
  return std::ranges::any_of(finding.did,
                             [site](const RankAction& did) { return did.site == site_id(site); });
}

bool lost_a_rank(const OneRun& run) {
  return std::ranges::any_of(run.result.ends,
                             [](const RankEnd& end) { return end.kind == RankEnd::Kind::lost; });
}

std::vector<std::string> fix_of(const OneRun& run, const Finding& finding) {
  if (finding.code == "LS106") {
    return {"a worker whose gradient waits for others never reaches the collective of the workers:",
            "let every gradient be answered (mode: sync or async), or leave the collective out"};
  }
  if (lost_a_rank(run)) {
    return {
        "start the job again from a checkpoint; mode: async, or batched with fewer gradients "
        "than workers, trains on without the lost worker"};
  }
  return {
      "give every worker the same number of batches, or write join: true: the server then "
      "counts the workers that are left"};
}

}  // namespace

void complete_server_remedies(const OneRun& run, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    const bool is_hang = finding.code == "LS101" || finding.code == "LS106";
    if (is_hang && waits_at(finding, server_sites::await)) {
      finding.fix = fix_of(run, finding);
    }
  }
}

}  // namespace lockstep::cli
