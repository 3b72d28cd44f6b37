#include "rehearsal/findings/sample_findings.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "properties/invariants/every_sample_once.hpp"
#include "rehearsal/findings/finding_place.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

/// What one stage took from its first loader: by rank and epoch, and in the first epoch in all.
struct StageSamples {
  std::vector<RankSamples> taken;
  int64_t first_epoch = 0;
};

// The first of those that were simulated.
std::set<int64_t> first_epochs(const OneRun& run, std::string_view stage, size_t count) {
  std::set<int64_t> epochs;
  for (const RankLog& log : run.preparation.log->ranks.distinct()) {
    for (const SampleUse& use : log.samples) {
      if (use.stage == stage && use.dataloader == 0) {
        epochs.insert(use.epoch);
      }
    }
  }
  while (epochs.size() > count) {
    epochs.erase(std::prev(epochs.end()));
  }
  return epochs;
}

StageSamples samples_taken(const OneRun& run, std::string_view stage,
                           size_t epochs_max = std::numeric_limits<size_t>::max()) {
  std::map<std::pair<int32_t, int64_t>, RankSamples> passes;
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  const std::set<int64_t> epochs = first_epochs(run, stage, epochs_max);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const SampleUse& use : ranks[rank].samples) {
      if (use.stage == stage && use.dataloader == 0 && epochs.contains(use.epoch)) {
        const auto number = static_cast<int32_t>(rank);
        RankSamples& pass = passes[{number, use.epoch}];
        pass.rank = number;
        pass.epoch = static_cast<int32_t>(use.epoch);
        pass.indices = samples_of_rank(run, rank, use.samples).list();
      }
    }
  }
  StageSamples samples;
  for (auto& [key, pass] : passes) {
    samples.first_epoch +=
        pass.epoch == passes.begin()->second.epoch ? static_cast<int64_t>(pass.indices.size()) : 0;
    samples.taken.push_back(std::move(pass));
  }
  return samples;
}

// What a sampler that drops the rest leaves over is dropped, not cut short.
bool sampler_dropped_rest(const OneRun& run, const char* stage, int64_t samples, int64_t taken) {
  const LoaderSpec* const loader = loader_of(run, stage);
  const int64_t ranks = run.preparation.data_parallel_size;
  return loader != nullptr && value_or(loader->sampler_drop_last, false) &&
         taken == samples / ranks * ranks;
}

void place_at(SiteId place, const char* label, Finding& finding) {
  if (place != no_site) {
    finding.sites.push_back({place, SiteRole::subject, label});
    finding.place = place;
  }
}

void add(const OneRun& run, const std::string& stage, std::vector<Finding> found,
         std::vector<Finding>& findings) {
  for (Finding& finding : found) {
    finding.when = "in " + stage;
    place_at(place_of_samples(run, stage == "training" ? "train" : stage),
             "decides who takes which samples", finding);
    findings.push_back(std::move(finding));
  }
}

std::set<int64_t> epochs_of(const OneRun& run, std::string_view stage) {
  std::set<int64_t> epochs;
  for (const RankLog& log : run.preparation.log->ranks.distinct()) {
    for (const SampleUse& use : log.samples) {
      if (use.stage == stage && use.dataloader == 0) {
        epochs.insert(use.epoch);
      }
    }
  }
  return epochs;
}

// Known without a list of samples where ranks take turns.
bool takes_each_once(const OneRun& run, std::string_view stage, int64_t samples) {
  return std::ranges::all_of(epochs_of(run, stage), [&](int64_t epoch) {
    const std::optional<SampleCounts> counts = counts_of_turns(run, stage, epoch, samples);
    return counts && counts->repeated == 0 && counts->missed == 0;
  });
}

// Likewise: whether the ranks share the samples, in an order that each epoch draws anew.
bool divides_in_new_orders(const OneRun& run, int64_t samples) {
  std::set<int64_t> drawn;
  const std::set<int64_t> epochs = epochs_of(run, "train");
  for (const int64_t epoch : epochs) {
    const std::optional<SampleCounts> counts = counts_of_turns(run, "train", epoch, samples);
    if (!counts || counts->repeated >= samples) {
      return false;
    }
    for (const SampleUse& use : run.preparation.log->ranks.front().samples) {
      if (use.stage == "train" && use.dataloader == 0 && use.epoch == epoch) {
        const Sampler::Options turns = *use.samples.turns();
        drawn.insert(turns.shuffle ? turns.epoch : epoch);
      }
    }
  }
  return drawn.size() == epochs.size();
}

}  // namespace

// Evaluation loops give figures that count every sample; a run cut short by a limit is not judged.
std::vector<Finding> sample_findings(const OneRun& run) {
  std::vector<Finding> findings;
  if (run.result.hung) {
    return findings;
  }
  for (const char* stage : {"validation", "test", "predict"}) {
    const std::optional<int64_t> samples = samples_of_stage(run, stage);
    if (samples && takes_each_once(run, stage, *samples)) {
      continue;
    }
    const StageSamples taken = samples_taken(run, stage);
    if (samples && !taken.taken.empty() &&
        (taken.first_epoch >= *samples ||
         sampler_dropped_rest(run, stage, *samples, taken.first_epoch))) {
      add(run, stage, every_sample_once(taken.taken, *samples), findings);
    }
  }
  const std::optional<int64_t> samples = samples_of_stage(run, "train");
  if (samples && divides_in_new_orders(run, *samples)) {
    return findings;
  }
  const LoaderSpec* const loader = loader_of(run, "train");
  if (loader != nullptr && loader->batches) {
    return findings;  // batches that are counted hold samples that are numbered in order
  }
  // Divided in the first, and in a different order in the second: listing all would take long.
  const StageSamples trained = samples_taken(run, "train", 2);
  if (samples) {
    add(run, "training", samples_divided(trained.taken, *samples), findings);
  }
  for (Finding& finding : order_changes(trained.taken)) {
    place_at(place_of_order(run), "decides the order", finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace lockstep::cli
