#include "rehearsal/findings/replica_findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "properties/invariants/replicas_agree.hpp"
#include "properties/invariants/updates_agree.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/known_differences.hpp"

namespace lockstep::cli {

namespace {

bool holds_parts(const OneRun& run) {
  return std::ranges::any_of(run.preparation.log->ranks,
                             [](const RankLog& rank) { return rank.holds_parts; });
}

std::vector<Finding> by_statements(const OneRun& run) {
  std::vector<RankUpdates> updates;
  for (size_t rank = 0; rank < run.preparation.log->ranks.size(); ++rank) {
    if (run.result.ends[rank].kind != RankEnd::Kind::finished) {
      return {};  // why it ended is a finding of its own
    }
    updates.push_back(
        {static_cast<int32_t>(rank), run.preparation.log->ranks[rank].weight_updates});
  }
  return updates_agree(updates, holds_parts(run) ? Holding::part : Holding::all);
}

}  // namespace

std::vector<Finding> replica_findings(const OneRun& run) {
  if (run.result.hung || replicas_differ_by_design(run)) {
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
  std::vector<Finding> differing = replicas_agree(replicas);
  // No other rank holds the same part, so that values of parts agree with nothing.
  const bool by_values = !replicas.empty() && (!holds_parts(run) || !differing.empty());
  if (!by_values) {
    return by_statements(run);
  }
  for (Finding& finding : differing) {
    tell_differences_of_replicas(run, finding);
  }
  return differing;
}

}  // namespace lockstep::cli
