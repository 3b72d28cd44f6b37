#include "rehearsal/findings/known_differences.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "model/strategy/exchange/first_weights.hpp"
#include "rehearsal/run/servers.hpp"

namespace lockstep::cli {

namespace {

/// What the ranks of the run say, each once.
std::vector<KnownDifference> differences_of(const OneRun& run) {
  std::vector<KnownDifference> told;
  for (const RankLog& rank : run.preparation.log->ranks) {
    for (const KnownDifference& known : rank.known_differences) {
      if (std::ranges::find(told, known) == told.end()) {
        told.push_back(known);
      }
    }
  }
  return told;
}

void tell(const std::vector<KnownDifference>& told, Finding& finding) {
  std::vector<std::string> fix;
  for (const KnownDifference& known : told) {
    finding.follows.push_back(known.cause);
    if (!known.remedy.empty() && std::ranges::find(fix, known.remedy) == fix.end()) {
      fix.push_back(known.remedy);
    }
  }
  finding.fix = fix.empty() ? finding.fix : fix;
}

bool all_finite(const OneRun& run) {
  for (const RankLog& rank : run.preparation.log->ranks) {
    for (const Values& values : rank.final_parameters) {
      for (int64_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values.number(i))) {
          return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

void tell_known_differences(const OneRun& run, Finding& finding) {
  std::vector<KnownDifference> told = differences_of(run);
  std::erase_if(
      told, [](const KnownDifference& known) { return known.kind == DifferenceKind::of_buffers; });
  tell(told, finding);
}

// No design makes a parameter infinite.
std::string designed_difference(const OneRun& run) {
  const std::vector<KnownDifference> told = differences_of(run);
  const auto designed = std::ranges::find_if(told, &KnownDifference::is_by_design);
  return designed != told.end() && all_finite(run) ? designed->cause : "";
}

namespace {

/// Workers of a parameter server that end with weights of different age: each has those of its last
/// pull.
enum class WorkersEnd : uint8_t { alike, others_before_rank_zero, rank_zero_before_others };

WorkersEnd end_of_workers(const OneRun& run) {
  const RankSet servers = servers_of(run);
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  std::set<int64_t> steps;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!servers.contains(static_cast<int32_t>(rank))) {
      steps.insert(ranks[rank].steps);
    }
  }
  if (servers.empty() || steps.size() < 2) {
    return WorkersEnd::alike;
  }
  return ranks.front().steps == *steps.rbegin() ? WorkersEnd::others_before_rank_zero
                                                : WorkersEnd::rank_zero_before_others;
}

}  // namespace

bool replicas_differ_by_design(const OneRun& run) {
  const std::vector<KnownDifference> told = differences_of(run);
  const auto has = [&](DifferenceKind kind) {
    return std::ranges::count(told, kind, &KnownDifference::kind) > 0;
  };
  return has(DifferenceKind::of_replicas_for_good) ||
         ((has(DifferenceKind::of_replicas_for_now) ||
           end_of_workers(run) == WorkersEnd::others_before_rank_zero) &&
          all_finite(run));
}

bool replicas_have_weights_of_their_own(const OneRun& run) {
  return std::ranges::count(differences_of(run), DifferenceKind::of_replicas_for_good,
                            &KnownDifference::kind) > 0;
}

std::optional<KnownDifference> unsent_first_weights(const OneRun& run) {
  const RankLog& first = run.preparation.log->ranks.front();
  const bool has_loaded = first.resumption && !first.resumption->file.empty();
  if (first.steps == 0 || has_loaded) {  // no fit, or all ranks began with a checkpoint's weights
    return std::nullopt;
  }
  const std::vector<KnownDifference> told = differences_of(run);
  const auto found = std::ranges::find_if(told, is_of_first_weights);
  return found == told.end() ? std::nullopt : std::optional(*found);
}

std::vector<KnownDifference> differences_of_buffers(const OneRun& run) {
  std::vector<KnownDifference> told = differences_of(run);
  std::erase_if(
      told, [](const KnownDifference& known) { return known.kind != DifferenceKind::of_buffers; });
  return told;
}

void tell_differences_of_replicas(const OneRun& run, Finding& finding) {
  std::vector<KnownDifference> told = differences_of(run);
  std::erase_if(
      told, [](const KnownDifference& known) { return known.kind != DifferenceKind::of_replicas; });
  if (end_of_workers(run) == WorkersEnd::rank_zero_before_others) {
    told.push_back(
        {"rank 0, which saves, has ended before other workers: it has the weights of its "
         "last pull, and servers have updated them since",
         "give every worker the same number of batches"});
  }
  tell(told, finding);
}

}  // namespace lockstep::cli
