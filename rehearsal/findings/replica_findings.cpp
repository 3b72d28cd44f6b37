#include "rehearsal/findings/replica_findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/user_program/sites.hpp"
#include "properties/invariants/replicas_agree.hpp"
#include "properties/invariants/updates_agree.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/known_differences.hpp"
#include "rehearsal/findings/replica_samples.hpp"

namespace lockstep::cli {

namespace {

bool holds_parts(const OneRun& run) {
  return std::ranges::any_of(run.preparation.log->ranks,
                             [](const RankLog& rank) { return rank.holds_parts; });
}

std::vector<Finding> by_statements(const OneRun& run) {
  const ByRank<RankLog>& logs = run.preparation.log->ranks;
  std::vector<RankUpdates> by_class;  // ranks that share a log have done the same
  for (size_t place = 0; place < logs.distinct().size(); ++place) {
    const RankLog& log = logs.distinct()[place];
    const size_t rank = logs.first_of(place);
    if (!log.runs_trainer) {
      continue;
    }
    if (run.result.ends[rank].kind != RankEnd::Kind::finished) {
      return {};  // why it ended is a finding of its own
    }
    by_class.push_back({static_cast<int32_t>(rank), log.weight_updates});
  }
  const Holding holding = holds_parts(run) ? Holding::part : Holding::all;
  std::vector<Finding> findings = updates_agree(by_class, holding);
  if (findings.empty() || logs.distinct().size() == logs.size()) {
    return findings;
  }
  std::vector<RankUpdates> all;
  for (size_t rank = 0; rank < logs.size(); ++rank) {
    if (logs[rank].runs_trainer) {
      all.push_back({static_cast<int32_t>(rank), logs[rank].weight_updates});
    }
  }
  return updates_agree(all, holding);
}

// No rank sends them: that ranks differ follows from their samples, whatever the values are.
std::vector<Finding> buffer_findings(const OneRun& run) {
  std::vector<Finding> findings;
  if (run.preparation.log->ranks.front().steps == 0) {
    return findings;  // all still hold the first ones
  }
  for (const KnownDifference& known : differences_of_buffers(run)) {
    RankSet ranks;
    for (size_t rank = 0; rank < run.preparation.log->ranks.size(); ++rank) {
      if (run.preparation.log->ranks[rank].runs_trainer) {
        ranks.add(static_cast<int32_t>(rank));
      }
    }
    Finding finding =
        finding_of("LS305", Level::warning,
                   fmt::format("{} do not hold the same running statistics", ranks.phrase()));
    finding.ranks = ranks;
    finding.why.text = known.cause;
    finding.follows.push_back(
        "each rank evaluates by the statistics of its own samples; one rank's are saved");
    finding.fix = {known.remedy};
    findings.push_back(std::move(finding));
  }
  return findings;
}

RankSet trainers_but_the_first(const OneRun& run) {
  RankSet ranks;
  for (size_t rank = 1; rank < run.preparation.log->ranks.size(); ++rank) {
    if (run.preparation.log->ranks[rank].runs_trainer) {
      ranks.add(static_cast<int32_t>(rank));
    }
  }
  return ranks;
}

// Replicas that begin with weights of their own stay apart, whatever the training does.
// `differing`: how they end, where that is known.
Finding first_weights_differ(const OneRun& run, const KnownDifference& known,
                             const std::vector<Finding>& differing) {
  const RankSet ranks = trainers_but_the_first(run);
  Finding finding = finding_of("LS314", Level::error,
                               fmt::format("{} {} not begin with the weights of rank 0",
                                           ranks.phrase(), ranks.size() == 1 ? "does" : "do"));
  finding.ranks = ranks;
  finding.why.text = known.cause;
  if (!differing.empty()) {
    finding.did = differing.front().did;
    finding.follows.push_back("at the end " + differing.front().title);
  }
  finding.follows.push_back(
      "equal gradients keep the replicas as far apart as they began; only one of them is saved");
  finding.fix = {known.remedy, "or let every rank draw the same: seed_everything"};
  const Scenario& scenario = *run.preparation.scenario;
  if (scenario.trainer && scenario.trainer->strategy) {
    finding.sites.push_back(
        {site_of(scenario.trainer->strategy->place), SiteRole::subject, "the strategy"});
  }
  return finding;
}

std::vector<Finding> weight_findings(const OneRun& run) {
  if (replicas_differ_by_design(run)) {
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
  if (const auto unsent = unsent_first_weights(run); unsent && (!by_values || !differing.empty())) {
    return {first_weights_differ(run, *unsent, differing)};
  }
  if (!by_values) {
    return by_statements(run);
  }
  for (Finding& finding : differing) {
    tell_differences_of_replicas(run, finding);
  }
  return differing;
}

}  // namespace

std::vector<Finding> replica_findings(const OneRun& run) {
  if (run.result.hung) {
    return {};
  }
  if (std::vector<Finding> apart = samples_of_replica_findings(run); !apart.empty()) {
    return apart;  // whatever else differs follows from it
  }
  std::vector<Finding> differing = buffer_findings(run);
  std::vector<Finding> weights = weight_findings(run);
  std::ranges::move(weights, std::back_inserter(differing));
  return differing;
}

}  // namespace lockstep::cli
