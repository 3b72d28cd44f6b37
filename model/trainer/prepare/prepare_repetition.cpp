// Which batches and epochs of a training do the same again, as far as the scenario says, and
// whether values decide what it does.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/loop/repeated_epochs.hpp"
#include "model/trainer/prepare/counted_names.hpp"
#include "model/trainer/prepare/data_of_ranks.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

/// What a name is in one batch or epoch and in the next, or with values and without.
enum class Kept : uint8_t {
  value,  ///< the same
  shape,  ///< other numbers, as many of them
  nothing,
};
using KeptNames = std::map<std::string, Kept, std::less<>>;

// Of names that a rank gives, those that differ altogether are left out.
const KeptNames& names_between_batches() {
  static const KeptNames names = {{"rank", Kept::value},           {"world_size", Kept::value},
                                  {"local_rank", Kept::value},     {"node_rank", Kept::value},
                                  {"is_global_zero", Kept::value}, {"batch_size", Kept::value},
                                  {"num_batches", Kept::value},    {"sanity_checking", Kept::value},
                                  {"dataloader_idx", Kept::value}, {"loss", Kept::shape},
                                  {"output", Kept::shape}};
  return names;
}

// Those that a training gives without any value of the network.
const KeptNames& names_without_values() {
  static const KeptNames names = [] {
    KeptNames all = names_between_batches();
    for (const char* name : {"batch_idx", "epoch", "global_step", "is_last_batch"}) {
      all.emplace(name, Kept::value);
    }
    return all;
  }();
  return names;
}

/// What the statements of a program make of names.
class NamesOfProgram {
 public:
  NamesOfProgram(const ProgramSpec& program, const KeptNames& given) : kept_(given) {
    for_each_statement(program, [this](const Statement& statement) { add(statement); });
    settle();
  }

  /// The first name or function for which less than `needed` is kept; empty: none.
  std::string varying(const Expression& expression, Kept needed) const {
    if (expression.uses_random() || expression.uses_unknown()) {
      return expression.uses_random() ? "random numbers" : "unknown";
    }
    for (const std::string& name : expression.names()) {
      if (kept(name) > needed) {
        return name;
      }
    }
    return "";
  }

 private:
  Kept kept(const std::string& name) const {
    const auto found = kept_.find(name);
    return found == kept_.end() ? Kept::nothing : found->second;
  }

  Kept kept(const Expression& expression) const {
    Kept least =
        expression.uses_random() || expression.uses_unknown() ? Kept::nothing : Kept::value;
    for (const std::string& name : expression.names()) {
      least = std::max(least, kept(name));
    }
    return least;
  }

  void add(const Statement& statement) {
    for (const Binding& binding : statement.bindings) {
      ++times_[binding.name];
      made_of_[binding.name].push_back(binding.expression);
    }
    if (statement.result) {
      const std::string& name = statement.result->value;
      ++times_[name];
      is_result_.insert(name);
      made_of_[name];
      for_each_expression(
          statement, [&](const Expression& expression) { made_of_[name].push_back(expression); });
    }
  }

  // A name that is bound at one place keeps as much as what it is made of, and what a statement
  // gives not its value. What is made of itself, or bound at several places, counts as varying.
  void settle() {
    for (bool grows = true; grows;) {
      grows = false;
      for (const auto& [name, expressions] : made_of_) {
        Kept least = is_result_.count(name) > 0 ? Kept::shape : Kept::value;
        for (const Expression& expression : expressions) {
          least = std::max(least, kept(expression));
        }
        if (times_[name] == 1 && kept_.count(name) == 0 && least != Kept::nothing) {
          kept_.emplace(name, least);
          grows = true;
        }
      }
    }
  }

  KeptNames kept_;
  std::map<std::string, int> times_;
  std::map<std::string, std::vector<Expression>> made_of_;
  std::set<std::string> is_result_;
};

bool keeps_what_it_did(StatementKind kind) {
  return kind == StatementKind::append || kind == StatementKind::should_stop ||
         kind == StatementKind::lr_scheduler_step || kind == StatementKind::new_group ||
         kind == StatementKind::threads || kind == StatementKind::set_requires_gradient_sync ||
         kind == StatementKind::update || kind == StatementKind::compute ||
         kind == StatementKind::reset;
}

// What these do follows from shapes: they hand values on.
bool only_passes_on(StatementKind kind) {
  return kind == StatementKind::let || kind == StatementKind::log ||
         kind == StatementKind::log_dict || kind == StatementKind::backward ||
         kind == StatementKind::item || kind == StatementKind::return_hook;
}

// Lightning counts one step for each window of an epoch, where one optimizer steps by itself.
bool knows_steps(const TrainingProgram& program) {
  return program.trainer.automatic_optimization && !program.accumulates_itself &&
         program.plan.optimizers.size() == 1;
}

// Why statements differ between batches; what they decide by counters alone is `counted`.
std::string varying_statement(const TrainingProgram& program, Repetition& repetition) {
  const ProgramSpec& hooks = *program.scenario->program;
  const NamesOfProgram names(hooks, names_between_batches());
  const CountedNames counted(hooks, knows_steps(program));
  std::string why;
  for_each_statement(*program.scenario->program, [&](const Statement& statement) {
    const int line = statement.place.line;
    if (why.empty() && keeps_what_it_did(statement.kind)) {
      why = fmt::format("`{}` (line {}) keeps what earlier batches did", name_of(statement.kind),
                        line);
    }
    const Kept needed = only_passes_on(statement.kind) ? Kept::shape : Kept::value;
    for_each_expression(statement, [&](const Expression& expression) {
      const std::string name = names.varying(expression, needed);
      if (name.empty()) {
        return;
      }
      if (!counted.holds(expression)) {
        why = !why.empty() ? why
                           : fmt::format("`{}` (line {}) depends on {}", name_of(statement.kind),
                                         line, name);
      } else if (needed == Kept::value || !counted.is_number(expression)) {
        repetition.counted.push_back(expression);
      }
    });
  });
  repetition.bound = counted.bound();
  repetition.ranks_decide_apart = counted.differ_by_rank(repetition.counted);
  return why;
}

// A loss that nobody computes is a placeholder, drawn for the samples of each batch.
bool has_placeholder_losses(const TrainingProgram& program) {
  const auto given = [](const LoaderSettings& loader) { return loader.columns->is_given("loss"); };
  return !program.plan.numerics && std::ranges::none_of(program.train, given);
}

bool logs_alike(const TrainingProgram& program) {
  KeptNames kept = names_between_batches();
  if (has_placeholder_losses(program)) {
    kept["loss"] = Kept::value;
  }
  const NamesOfProgram names(*program.scenario->program, kept);
  bool alike = true;
  for_each_statement(*program.scenario->program, [&](const Statement& statement) {
    const bool logs =
        statement.kind == StatementKind::log || statement.kind == StatementKind::log_dict;
    for_each_expression(statement, [&](const Expression& expression) {
      alike = alike && (!logs || names.varying(expression, Kept::value).empty());
    });
  });
  return alike;
}

// Rates change nothing but values: whatever is left out, schedulers step for it. Not where
// something else than their count decides what they do.
std::string scheduler_by_hook(const TrainingProgram& program) {
  const std::optional<ProgramSpec>& hooks = program.scenario->program;
  return !program.schedulers.empty() && hooks && hooks->find("lr_scheduler_step") != nullptr
             ? "`lr_scheduler_step` decides how schedulers step"
             : "";
}

std::string monitoring_scheduler(const TrainingProgram& program, SchedulerInterval interval) {
  for (const SchedulerSettings& scheduler : program.schedulers) {
    if (scheduler.is_monitored() && scheduler.interval == interval) {
      return scheduler.name + " looks at what was logged before";
    }
  }
  return "";
}

std::string varying_callback(const TrainingProgram& program) {
  for (const CallbackSettings& callback : program.callbacks) {
    if (std::holds_alternative<EarlyStoppingSettings>(callback)) {
      return "EarlyStopping looks at what earlier epochs gave";
    }
    const auto* const checkpoint = std::get_if<ModelCheckpointSettings>(&callback);
    if (checkpoint != nullptr && (!checkpoint->monitor.empty() || checkpoint->save_top_k != 1)) {
      return "ModelCheckpoint looks at what earlier epochs gave";
    }
  }
  return "";
}

}  // namespace

bool is_decided_by_values(const ProgramSpec& program) {
  const NamesOfProgram names(program, names_without_values());
  bool decided = false;
  for_each_statement(program, [&](const Statement& statement) {
    const Kept needed = only_passes_on(statement.kind) ? Kept::shape : Kept::value;
    for_each_expression(statement, [&](const Expression& expression) {
      decided = decided || !names.varying(expression, needed).empty();
    });
  });
  return decided;
}

bool values_decide(const TrainingProgram& program) {
  return !varying_callback(program).empty() ||
         (program.scenario->program && is_decided_by_values(*program.scenario->program));
}

namespace {

// By their numbers, or those of steps and batches: ranks in different epochs have different ones.
bool epochs_matter(const TrainingProgram& program, const Repetition& repetition) {
  return !repetition.counted.empty() || logs_rows(program) || save_every(program) > 0 ||
         !program.scenario->faults.empty() || program.trainer.accumulate_grad_batches > 1 ||
         !program.trainer.automatic_optimization;
}

Repetition repetition_of(const TrainingProgram& program, const RunOptions& options) {
  Repetition repetition;
  const TrainBatches batches = train_batches(program, options);
  const std::optional<VerifySpec>& verify = program.scenario->verify;
  const bool all_steps = verify && value_or(verify->all_steps, false);
  repetition.micro_batches = !all_steps && !program.plan.numerics;
  if (all_steps) {
    repetition.why_not = "`verify.all_steps` is true";
  } else if (program.plan.numerics) {
    repetition.why_not = "values are computed";
  } else if (!batches.are_known) {
    repetition.why_not = "how many batches ranks have is not known before the run";
  } else {
    repetition.why_not = monitoring_scheduler(program, SchedulerInterval::step);
  }
  if (repetition.why_not.empty()) {
    repetition.why_not = scheduler_by_hook(program);
  }
  if (repetition.why_not.empty() && program.scenario->program) {
    repetition.why_not = varying_statement(program, repetition);
  }
  // Else those whose batches have ended go on to another epoch than the others.
  repetition.ranks_are_in_step = batches.are_known && batches.by_rank.empty();
  repetition.epochs_matter = !repetition.ranks_are_in_step && epochs_matter(program, repetition);
  repetition.batches = repetition.why_not.empty();
  repetition.logs = program.scenario->program && logs_alike(program);
  if (repetition.batches) {
    repetition.why_not = varying_callback(program);
    if (repetition.why_not.empty()) {
      repetition.why_not = monitoring_scheduler(program, SchedulerInterval::epoch);
    }
    repetition.epochs = repetition.why_not.empty();
  }
  return repetition;
}

}  // namespace

void take_repetition(Preparation& preparation, TrainingProgram& program) {
  program.repetition = repetition_of(program, preparation.options);
  preparation.repetition = program.repetition;
}

}  // namespace lockstep
