#include "rehearsal/findings/replica_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "rehearsal/findings/finding_cause.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

/// How a rank's samples of its first epoch of training are chosen; nothing: in the same way on
/// every rank of a replica.
std::optional<Sampler::Options> turns_of(const OneRun& run, size_t rank) {
  for (const SampleUse& use : run.preparation.log->ranks[rank].samples) {
    if (use.stage == "train" && use.samples.size() > 0) {
      return samples_of_rank(run, rank, use).turns();
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<Finding> samples_of_replica_findings(const OneRun& run) {
  const std::vector<int32_t>& indices = run.preparation.data_parallel_indices;
  std::map<int32_t, int64_t> index_of;  ///< in the sampler, of the first rank of each replica
  RankSet apart;
  int64_t replicas = 0;
  for (size_t rank = 0; rank < indices.size(); ++rank) {
    const std::optional<Sampler::Options> turns = turns_of(run, rank);
    if (!turns || turns->replicas == run.preparation.data_parallel_size) {
      return {};
    }
    const auto [first, is_first] = index_of.try_emplace(indices[rank], turns->index);
    if (indices[rank] == 0 && (is_first || first->second != turns->index)) {
      apart.add(static_cast<int32_t>(rank));
    }
    replicas = turns->replicas;
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
      replicas,
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
