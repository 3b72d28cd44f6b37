#pragma once

#include <memory>
#include <optional>

#include "model/core/site.hpp"
#include "model/scenario/data_spec.hpp"
#include "model/strategy/plan.hpp"
#include "model/trainer/data/sample_columns.hpp"
#include "model/trainer/data/sampler.hpp"

namespace lockstep {

/// One DataLoader of the scenario with its defaults, the same for all ranks.
struct LoaderSettings {
  int64_t samples = 0;
  std::optional<Expression> batches;  ///< of each rank; then `samples` does not count
  int64_t batch_size = 8;
  std::optional<Expression> batch_size_of_rank;  ///< where ranks have different ones
  bool shuffle = false;
  bool in_order = false;  ///< overfit_batches: no sampler that the trainer inserts shuffles
  bool drop_last = false;
  bool iterable = false;
  SamplerKind sampler = SamplerKind::automatic;
  bool sampler_drop_last = false;  ///< of a DistributedSampler that the user makes
  bool set_epoch = true;
  Time sample_time{};
  int64_t workers = 0;  ///< 0: the rank's own thread loads
  double cores = 1;     ///< of the node, that each of its ranks has; below 1 where they share
  int64_t prefetch_factor = 2;
  std::shared_ptr<const SampleColumns> columns;
  std::shared_ptr<const GivenSamples> given{};  ///< null: every sample is drawn from the seed
  SourcePlace place{};
  SiteId batches_site{};  ///< of the loop over its batches
};

/// What the expressions of a loader give on one rank; nothing where it has no such expression.
struct OwnBatches {
  std::optional<int64_t> count{};
  std::optional<int64_t> size{};
};

enum class LoaderRole : uint8_t { train, evaluate, predict };

/// How a trainer gives samplers to loaders.
struct SamplerPolicy {
  LoaderRole role = LoaderRole::train;
  bool distributed = false;  ///< the strategy spreads data over replicas
  bool inject = true;        ///< use_distributed_sampler
  int64_t replicas = 1;
  int64_t index = 0;
  uint64_t seed = 0;
  bool joins = false;  ///< the batches of all replicas are one
  /// Of the process group, among which a DistributedSampler of the script divides the samples, also
  /// where several compute one replica together; 0: as many as replicas.
  int64_t ranks = 0;
  int64_t rank = 0;
};

/// The batches of one rank in one epoch; or of all replicas, each batch joined from theirs.
class RankBatches {
 public:
  /// `own`: of this rank, where the settings say so by expressions.
  RankBatches(const LoaderSettings& settings, const SamplerPolicy& policy, int64_t epoch,
              const OwnBatches& own);
  int64_t size() const { return size_; }
  Batch at(int64_t batch) const;
  /// Of the first `batches`; `shuffled`: in their order, else as the sampler numbers them.
  std::vector<int64_t> list(int64_t batches, bool shuffled) const;
  int64_t samples_of(int64_t batches) const;
  /// Those of another replica, of its own sampler alone.
  RankBatches of_replica(int64_t index) const;
  /// How replicas that take turns share the samples; nothing: they do not.
  std::optional<Sampler::Options> turns() const;

 private:
  void add_samples(const Sampler& sampler, int64_t number, Batch& batch) const;

  std::shared_ptr<const GivenSamples> given_;
  int64_t batch_size_ = 1;
  int64_t replicas_ = 1;
  int64_t index_ = 0;
  /// Samplers of this rank, or of all ranks; empty if `batches` are given and samples are numbered.
  std::vector<Sampler> samplers_;
  int64_t size_ = 0;
};

/// The sampler that Lightning inserts (data_connector.py): distributed unless the data are
/// iterable, the strategy is not distributed or injection is off; the train sampler shuffles
/// whatever the loader says; predict uses the unrepeated one. Iterable data are whole on every
/// rank, unless they shard themselves (`sampler: unrepeated`).
Sampler::Options sampler_options(const LoaderSettings& settings, const SamplerPolicy& policy,
                                 int64_t epoch);

}  // namespace lockstep
