#include "rehearsal/findings/without_effect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "model/metric/definition.hpp"
#include "model/scenario/expressions_of.hpp"

namespace lockstep::cli {

namespace {

bool came_to_its_end(const OneRun& run) {
  return !run.result.hung && run.undecided.empty() &&
         std::ranges::all_of(run.result.ends, [](const RankEnd& end) {
           return end.kind == RankEnd::Kind::finished;
         });
}

void note(std::vector<Problem>& notes, const SourcePlace& place, const std::string& message,
          const std::string& remedy = "") {
  if (place.line > 0) {
    notes.push_back({Problem::Kind::note, place, message, remedy});
  }
}

std::set<std::string> hooks_that_ran(const OneRun& run) {
  std::set<std::string> hooks;
  for (const RankLog& rank : run.preparation.log->ranks) {
    hooks.insert(rank.hooks.begin(), rank.hooks.end());
  }
  return hooks;
}

std::set<std::string> stages_that_ran(const OneRun& run) {
  std::set<std::string> stages;
  for (const RankLog& rank : run.preparation.log->ranks) {
    for (const SampleUse& use : rank.samples) {
      stages.insert(use.stage == "sanity" ? "validation" : use.stage);
    }
  }
  return stages;
}

// Why a hook of this name did not run, as far as the stages tell.
std::string reason_of(const std::string& hook, const std::set<std::string>& stages) {
  for (const char* stage : {"validation", "test", "predict", "train"}) {
    if (hook.find(stage) != std::string::npos && stages.count(stage) == 0) {
      return fmt::format(", as nothing runs {}", std::string_view(stage) == "train" ? "training"
                                                 : std::string_view(stage) == "predict"
                                                     ? "prediction"
                                                     : stage);
    }
  }
  return "";
}

// What stands in a hook that nobody calls does nothing, and no check has looked at it.
void note_hooks(const OneRun& run, const std::set<std::string>& stages,
                std::vector<Problem>& notes) {
  const std::set<std::string> ran = hooks_that_ran(run);
  for (const Hook& hook : run.preparation.scenario->program->hooks) {
    const bool is_told = std::ranges::any_of(run.problems, [&hook](const Problem& problem) {
      return problem.place.line == hook.place.line && problem.place.column == hook.place.column;
    });
    const bool waits_for_errors = hook.name == "on_exception";
    if (hook.name != "main" && !is_told && !waits_for_errors && ran.count(hook.name) == 0) {
      note(notes, hook.place,
           fmt::format("the hook `{}` never runs{}: its statements were not checked", hook.name,
                       reason_of(hook.name, stages)));
    }
  }
}

void note_loaders(const OneRun& run, const std::set<std::string>& stages,
                  std::vector<Problem>& notes) {
  const Scenario& scenario = *run.preparation.scenario;
  struct StageKeys {
    const char* stage;
    const char* key;
    const std::vector<LoaderSpec>& loaders;
  };
  const DataSpec& data = *scenario.data;
  const StageKeys all[] = {{"train", "train", data.train},
                           {"validation", "val", data.val},
                           {"test", "test", data.test},
                           {"predict", "predict", data.predict}};
  for (const StageKeys& keys : all) {
    if (stages.count(keys.stage) != 0 || keys.loaders.empty()) {
      continue;
    }
    note(notes, keys.loaders.front().place,
         fmt::format("`data.{}` has no effect here: nothing runs its loader", keys.key));
  }
}

void note_limits(const OneRun& run, const std::set<std::string>& stages,
                 std::vector<Problem>& notes) {
  const TrainerSpec& trainer = *run.preparation.scenario->trainer;
  const auto check = [&](const std::optional<PlainValue>& limit, const char* stage,
                         const char* name) {
    // Zero is how a stage is switched off.
    if (limit && limit->number().value_or(1) != 0 && stages.count(stage) == 0) {
      note(notes, limit->place, fmt::format("`{}` has no effect here", name));
    }
  };
  check(trainer.limit_val_batches, "validation", "limit_val_batches");
  check(trainer.limit_test_batches, "test", "limit_test_batches");
  check(trainer.limit_predict_batches, "predict", "limit_predict_batches");
}

void note_metrics(const Scenario& scenario, std::vector<Problem>& notes) {
  std::set<std::string> named;
  for_each_statement(*scenario.program, [&named](const Statement& statement) {
    if (statement.name) {
      named.insert(metric_name_of(statement.name->value));
    }
    for_each_expression(statement, [&named](const Expression& expression) {
      for (const std::string& name : expression.names()) {
        named.insert(metric_name_of(name));
      }
    });
  });
  for (const NamedMetric& metric : scenario.metrics) {
    if (named.count(metric.name) == 0) {
      note(notes, metric.metric.place,
           fmt::format("the metric `{}` has no effect here: no statement names it", metric.name));
    }
  }
}

}  // namespace

std::vector<Problem> notes_on_unused(const OneRun& run) {
  std::vector<Problem> notes;
  const Scenario& scenario = *run.preparation.scenario;
  if (scenario.is_bare_program() || !came_to_its_end(run)) {
    return notes;
  }
  const std::set<std::string> stages = stages_that_ran(run);
  if (scenario.program) {
    note_hooks(run, stages, notes);
    note_metrics(scenario, notes);
  }
  note_loaders(run, stages, notes);
  note_limits(run, stages, notes);
  return notes;
}

}  // namespace lockstep::cli
