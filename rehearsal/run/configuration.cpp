#include "rehearsal/run/configuration.hpp"

#include <algorithm>

namespace lockstep::cli {

namespace {

const std::vector<LoaderSpec>& loaders_of(const DataSpec& data, std::string_view stage) {
  if (stage == "validation") {
    return data.val;
  }
  if (stage == "test") {
    return data.test;
  }
  return stage == "predict" ? data.predict : data.train;
}

}  // namespace

const LoaderSpec* loader_of(const OneRun& run, std::string_view stage) {
  const Scenario& scenario = *run.preparation.scenario;
  if (!scenario.data) {
    return nullptr;
  }
  const std::vector<LoaderSpec>& loaders = loaders_of(*scenario.data, stage);
  return loaders.size() == 1 ? &loaders.front() : nullptr;
}

std::string_view name_of_backend(const Preparation& preparation) {
  switch (preparation.placement.device) {
    case DeviceType::tpu: return "xla";
    case DeviceType::mps: return "mps";
    default: return preparation.gloo ? "gloo" : "nccl";
  }
}

bool has_own_batches(const LoaderSpec& loader) {
  const auto names_rank = [](const Column& column) {
    return std::ranges::any_of(column.expression.names(),
                               [](const std::string& name) { return name != "sample"; });
  };
  return loader.batches || loader.batch_size_of_rank ||
         (loader.values && std::ranges::any_of(loader.values->columns, names_rank));
}

std::optional<int64_t> samples_of_stage(const OneRun& run, std::string_view stage) {
  const LoaderSpec* loader = loader_of(run, stage);
  if (loader == nullptr || loader->batches || loader->tokens || !loader->samples) {
    return std::nullopt;
  }
  return loader->samples->value;
}

UsedSamples samples_of_rank(const OneRun& run, size_t rank, const UsedSamples& of_class) {
  const RankClasses* const classes = run.preparation.options.classes.get();
  const bool has_run =
      classes == nullptr || static_cast<size_t>(classes->first(classes->of(rank))) == rank;
  if (has_run) {
    return of_class;
  }
  const std::vector<int32_t>& indices = run.preparation.data_parallel_indices;
  const std::optional<Sampler::Options> turns = of_class.turns();
  if (turns && turns->replicas == run.preparation.options.world_size) {
    return of_class.of_replica(static_cast<int64_t>(rank));
  }
  return of_class.of_replica(indices.empty() ? static_cast<int64_t>(rank) : indices[rank]);
}

// Of replicas that take turns nothing needs to be listed: positions below the number of samples are
// used once, and those beyond it begin again where each replica has used its first.
std::optional<SampleCounts> counts_of_turns(const OneRun& run, std::string_view stage,
                                            int64_t epoch, int64_t samples) {
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  const auto world = static_cast<int64_t>(ranks.size());
  int64_t used = 0;
  int64_t seen = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto is_asked = [&](const SampleUse& use) {
      return use.stage == stage && use.epoch == epoch && use.dataloader == 0;
    };
    const std::vector<SampleUse>& uses = ranks[rank].samples;
    const auto use = std::ranges::find_if(uses, is_asked);
    if (use == uses.end() || std::any_of(use + 1, uses.end(), is_asked)) {
      return std::nullopt;
    }
    const std::optional<Sampler::Options> turns = use->samples.turns();
    const int64_t size = use->samples.size();
    if (!turns || turns->replicas != world || turns->samples != samples || size < 1 ||
        run.preparation.data_parallel_size != world) {
      return std::nullopt;
    }
    const int64_t before = std::max<int64_t>(0, samples - static_cast<int64_t>(rank));
    used += size;
    seen += std::min(size, (before + world - 1) / world);
  }
  return SampleCounts{.repeated = used - seen, .missed = samples - seen};
}

std::optional<SampleCounts> sample_counts(const OneRun& run, std::string_view stage,
                                          int64_t epoch) {
  const std::optional<int64_t> samples = samples_of_stage(run, stage);
  if (!samples) {
    return std::nullopt;
  }
  if (const std::optional<SampleCounts> counts = counts_of_turns(run, stage, epoch, *samples)) {
    return counts;
  }
  std::vector<RankSamples> taken;
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const SampleUse& use : ranks[rank].samples) {
      if (use.stage == stage && use.epoch == epoch && use.dataloader == 0) {
        taken.push_back({static_cast<int32_t>(rank), 0,
                         samples_of_rank(run, rank, use.samples).list_unshuffled()});
      }
    }
  }
  return taken.empty() ? std::nullopt : std::optional(count_samples(taken, 0, *samples));
}

std::optional<SampleCounts> last_sample_counts(const OneRun& run, std::string_view stage) {
  int64_t last = 0;
  for (const SampleUse& use : run.preparation.log->ranks.front().samples) {
    last = use.stage == stage ? std::max(last, use.epoch) : last;
  }
  return sample_counts(run, stage, last);
}

Results configuration_of(const OneRun& run) {
  const Preparation& preparation = run.preparation;
  const Scenario& scenario = *preparation.scenario;
  Results results;
  results.devices = int64_t{preparation.options.world_size} * preparation.options.devices_per_rank;
  results.strategy = preparation.strategy;
  if (scenario.is_bare_program()) {
    return results;
  }
  results.learning_rate = preparation.plan.optimizers.front().lr;
  const LoaderSpec* loader = loader_of(run, "train");
  if (loader == nullptr || !loader->batch_size) {
    return results;
  }
  const int64_t batch = loader->batch_size->value;
  const int64_t accumulated =
      scenario.trainer ? value_or(scenario.trainer->accumulate_grad_batches, int64_t{1}) : 1;
  // Where layers are divided among the devices of a process, each of them sees all samples.
  const bool divides_samples = preparation.placement.traits.divides_samples;
  const int64_t parts = divides_samples ? preparation.options.devices_per_rank : 1;
  results.device_batch_size = (batch + parts - 1) / parts;
  results.effective_batch_size =
      (Bytes(batch) * preparation.gradients_of_update * std::max<int64_t>(1, accumulated)).count();
  return results;
}

}  // namespace lockstep::cli
