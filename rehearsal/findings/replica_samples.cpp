#include "rehearsal/findings/replica_samples.hpp"

#include <fmt/format.h>

#include <optional>

#include "rehearsal/findings/finding_cause.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

/// How the samples of the first epoch of training are chosen, of the first rank that takes turns
/// with others; nothing: no rank does. Ranks that repeat the samples of another one list none.
std::optional<Sampler::Options> first_turns(const OneRun& run) {
  for (const RankLog& rank : run.preparation.log->ranks) {
    for (const SampleUse& use : rank.samples) {
      if (use.stage == "train" && use.samples.size() > 0) {
        return use.samples.turns();
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<Finding> samples_of_replica_findings(const OneRun& run) {
  const std::vector<int32_t>& indices = run.preparation.data_parallel_indices;
  const std::optional<Sampler::Options> turns = first_turns(run);
  if (!turns || turns->replicas <= run.preparation.data_parallel_size) {
    return {};
  }
  RankSet apart;  // of the first replica
  for (size_t rank = 0; rank < indices.size(); ++rank) {
    if (indices[rank] == 0) {
      apart.add(static_cast<int32_t>(rank));
    }
  }
  if (apart.size() < 2) {
    return {};
  }
  Finding finding = finding_of(
      "LS305", Level::error,
      fmt::format("{} compute one replica together and load different samples", apart.phrase()));
  finding.ranks = apart;
  const LoaderSpec* const loader = loader_of(run, "train");
  if (const SiteId site = loader == nullptr ? no_site : first_written({&loader->place});
      site != no_site) {
    finding.sites.push_back({site, SiteRole::subject, "what each rank loads"});
  }
  finding.why.text = fmt::format(
      "the DistributedSampler of the script divides the samples among all {} ranks, as it does "
      "without num_replicas and rank, and the strategy has {} of different samples",
      turns->replicas,
      run.preparation.data_parallel_size == 1
          ? "one replica"
          : fmt::format("{} replicas", run.preparation.data_parallel_size));
  finding.follows.push_back(
      "parts of different samples are added up as if they were of one: no sample is trained");
  finding.fix = {
      fmt::format("leave the sampler to Lightning (`sampler: auto`), or give it "
                  "num_replicas={} and the rank's data-parallel index",
                  run.preparation.data_parallel_size)};
  return {std::move(finding)};
}

}  // namespace lockstep::cli
