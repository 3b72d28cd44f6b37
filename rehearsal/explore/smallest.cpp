#include "rehearsal/explore/smallest.hpp"

#include <algorithm>

#include "properties/diagnosis/shrink.hpp"
#include "rehearsal/explore/explore.hpp"
#include "rehearsal/explore/world_sizes.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

constexpr int64_t variants_max = 40;
constexpr int64_t schedules_of_variant_max = 64;
// A scenario of more operations than this is not run dozens of times for a shorter example.
constexpr int64_t operations_max = 200'000;
// A variant may take longer than the original (more epochs until max_steps, fewer of them alike):
// beyond this many calls of ranks, and beyond the original's, it is no smaller example.
constexpr int64_t calls_of_any_variant = 10'000;

void add_below(std::vector<Setting>& candidates, const std::string& name, int64_t current,
               int64_t smallest) {
  for (const int64_t value : {1, 2, 3, 4, 8, 16, 32}) {
    if (value >= smallest && value < current) {
      candidates.push_back({name, std::to_string(value)});
    }
  }
}

// Every scenario has a loader for validation; without a step or data of its own nothing uses it.
bool validates(const Scenario& scenario, const OneRun& run) {
  const LoaderSpec* const loader = loader_of(run, "validation");
  return (loader != nullptr && loader->place.line > 0) ||
         (scenario.program && scenario.program->find("validation_step") != nullptr);
}

void add_samples(std::vector<Setting>& candidates, const OneRun& run, const char* stage,
                 const std::string& section) {
  if (const auto samples = samples_of_stage(run, stage)) {
    add_below(candidates, "data." + section + ".samples", *samples, 1);
  }
}

std::vector<Setting> candidates_of(const Rehearsal& rehearsal) {
  const Scenario& scenario = *rehearsal.scenario;
  std::vector<Setting> candidates;
  if (scenario.is_bare_program()) {
    add_below(candidates, "cluster.ranks", rehearsal.run.preparation.options.world_size, 2);
    return candidates;
  }
  const TrainerSpec trainer = scenario.trainer.value_or(TrainerSpec{});
  add_below(candidates, "trainer.num_nodes", value_or(trainer.num_nodes, int64_t{1}), 1);
  const int64_t nodes = std::max<int64_t>(1, value_or(trainer.num_nodes, int64_t{1}));
  if (is_sized_by_launcher(rehearsal)) {
    add_below(candidates, "launcher." + scenario.launcher->name + ".np",
              rehearsal.run.preparation.options.world_size, 2);
  } else {
    add_below(candidates, "trainer.devices", rehearsal.results.devices / nodes, 2);
  }
  add_below(candidates, "trainer.max_epochs", value_or(trainer.max_epochs, int64_t{1}), 1);
  add_samples(candidates, rehearsal.run, "train", "train");
  if (validates(scenario, rehearsal.run)) {
    add_samples(candidates, rehearsal.run, "validation", "val");
  }
  return candidates;
}

}  // namespace

std::string smallest_variant(const CaseSource& source, const Rehearsal& rehearsal,
                             const Finding& finding, const RehearseRequest& request) {
  if (rehearsal.run.result.simulated_operations > operations_max ||
      request.world != World::simulated) {
    return "";
  }
  tell(request.progress.get(), "looking for a smaller example");
  note_phase(request.deadline.get(), "a smaller example was looked for");
  const Deadline limits = (request.deadline ? *request.deadline : Deadline())
                              .with_calls_at_most(std::max(
                                  rehearsal.run.result.simulated_operations, calls_of_any_variant));
  const StillShows still_shows = [&](std::span<const Setting> settings) {
    if (limits.passed()) {
      return false;
    }
    std::vector<std::string> set;
    for (const Setting& setting : settings) {
      set.push_back(setting.text());
    }
    const LoadedScenarios loaded = source.load(set);
    if (!loaded.ok()) {
      return false;
    }
    const Explored variant = explore(loaded.scenarios.front(),
                                     {World::simulated, schedules_of_variant_max, true, &limits});
    return std::any_of(variant.findings.begin(), variant.findings.end(),
                       [&](const Finding& other) { return same_defect(finding, other); });
  };
  return shrink(candidates_of(rehearsal), still_shows, variants_max).text();
}

}  // namespace lockstep::cli
