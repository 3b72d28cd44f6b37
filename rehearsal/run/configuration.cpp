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

std::optional<SampleCounts> sample_counts(const OneRun& run, std::string_view stage,
                                          int64_t epoch) {
  std::vector<RankSamples> taken;
  const std::vector<RankLog>& ranks = run.preparation.log->ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const SampleUse& use : ranks[rank].samples) {
      if (use.stage == stage && use.epoch == epoch && use.dataloader == 0) {
        taken.push_back({static_cast<int32_t>(rank), 0, use.samples.list_unshuffled()});
      }
    }
  }
  const std::optional<int64_t> samples = samples_of_stage(run, stage);
  return taken.empty() || !samples ? std::nullopt
                                   : std::optional(count_samples(taken, 0, *samples));
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
  const int64_t parts = preparation.options.devices_per_rank;
  results.device_batch_size = (batch + parts - 1) / parts;
  results.effective_batch_size =
      (Bytes(batch) * preparation.gradients_of_update * std::max<int64_t>(1, accumulated)).count();
  return results;
}

}  // namespace lockstep::cli
