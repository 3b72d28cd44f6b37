#include "cli/configuration.hpp"

#include <algorithm>

namespace lockstep::cli {

namespace {

// Defaults of the scenario format, section 4.
constexpr int64_t default_batch_size = 8;
constexpr int64_t default_train_samples = 1024;
constexpr int64_t default_other_samples = 256;

template <class T>
void inherit(Given<T>& own, const Given<T>& common) {
  if (!own) {
    own = common;
  }
}

const std::vector<LoaderSpec>& loaders_of(const DataSpec& data, std::string_view stage) {
  if (stage == "validate") {
    return data.val;
  }
  if (stage == "test") {
    return data.test;
  }
  return stage == "predict" ? data.predict : data.train;
}

}  // namespace

std::optional<LoaderSpec> loader_of(const Scenario& scenario, std::string_view stage) {
  if (!scenario.data) {
    return LoaderSpec{};
  }
  const std::vector<LoaderSpec>& loaders = loaders_of(*scenario.data, stage);
  if (loaders.size() > 1) {
    return std::nullopt;
  }
  LoaderSpec loader = loaders.empty() ? LoaderSpec{} : loaders.front();
  const LoaderSpec& common = scenario.data->common;
  if (!loader.batches && !loader.tokens) {
    inherit(loader.samples, common.samples);
  }
  if (!loader.samples) {
    inherit(loader.batches, common.batches);
    inherit(loader.tokens, common.tokens);
  }
  inherit(loader.batch_size, common.batch_size);
  inherit(loader.drop_last, common.drop_last);
  inherit(loader.shuffle, common.shuffle);
  return loader;
}

std::optional<int64_t> samples_of_stage(const Scenario& scenario, std::string_view stage) {
  const std::optional<LoaderSpec> loader = loader_of(scenario, stage);
  if (!loader || loader->batches || loader->tokens) {
    return std::nullopt;
  }
  return value_or(loader->samples,
                  stage == "train" ? default_train_samples : default_other_samples);
}

Results configuration_of(const OneRun& run) {
  const Preparation& preparation = run.preparation;
  const Scenario& scenario = *preparation.scenario;
  Results results;
  results.devices =
      int64_t{preparation.options.world_size} * preparation.options.devices_per_rank;
  results.strategy = preparation.strategy;
  if (scenario.is_bare_program()) {
    return results;
  }
  results.learning_rate = preparation.plan.optimizer.lr;
  const std::optional<LoaderSpec> loader = loader_of(scenario, "train");
  if (!loader) {
    return results;
  }
  const int64_t batch = value_or(loader->batch_size, default_batch_size);
  const int64_t accumulated =
      scenario.trainer ? value_or(scenario.trainer->accumulate_grad_batches, int64_t{1}) : 1;
  const int64_t parts = preparation.options.devices_per_rank;
  results.device_batch_size = (batch + parts - 1) / parts;
  results.effective_batch_size =
      (Bytes(batch) * preparation.options.world_size * std::max<int64_t>(1, accumulated)).count();
  return results;
}

}  // namespace lockstep::cli
