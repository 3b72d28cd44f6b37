#include "rehearsal/findings/replica_findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "properties/invariants/replicas_agree.hpp"
#include "properties/invariants/updates_agree.hpp"
#include "rehearsal/findings/invariants.hpp"

namespace lockstep::cli {

namespace {

std::vector<Finding> by_statements(const OneRun& run) {
  std::vector<RankUpdates> updates;
  for (size_t rank = 0; rank < run.preparation.log->ranks.size(); ++rank) {
    if (run.result.ends[rank].kind != RankEnd::Kind::finished) {
      return {};  // why it ended is a finding of its own
    }
    updates.push_back(
        {static_cast<int32_t>(rank), run.preparation.log->ranks[rank].weight_updates});
  }
  return updates_agree(updates);
}

}  // namespace

std::vector<Finding> replica_findings(const OneRun& run) {
  if (run.result.hung) {
    return {};
  }
  std::vector<ReplicaValues> replicas;
  for (NamedValues& values : parameters_of(run)) {
    if (values.first_element) {  // ranks that hold the same part hold it alike
      values.name += fmt::format("[{}:{}]", *values.first_element,
                                 *values.first_element + values.values.size());
    }
    replicas.push_back(
        {values.rank, "data parallel 0", std::move(values.name), std::move(values.values)});
  }
  return replicas.empty() ? by_statements(run) : replicas_agree(replicas);
}

}  // namespace lockstep::cli
