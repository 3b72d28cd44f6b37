// Clipping that a strategy does by its own configuration, whatever else is asked for.
#include <fmt/core.h>

#include <set>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

std::string text_of_clipping(const GradientClipping& clipping) {
  return clipping.algorithm == GradientClipping::Algorithm::none
             ? "clips nothing"
             : fmt::format("clips by the norm {}", clipping.limit);
}

}  // namespace

// DeepSpeedPrecision.clip_gradients has no body, so the hook that calls it changes nothing.
void check_ignored_clipping(Preparation& preparation, const StrategyEntry& entry) {
  const auto& program = preparation.scenario->program;
  if (!program || entry.traits.manual_clipping != ManualClipping::ignored) {
    return;
  }
  const bool automatic = value_or(program->automatic_optimization, true);
  const std::string remedy =
      fmt::format("set {}`gradient_clipping` in the `config` of {}",
                  automatic ? "trainer.gradient_clip_val, or " : "", entry.class_name);
  std::set<const Statement*> told;
  const Hook* const hook = program->find("configure_gradient_clipping");
  if (hook != nullptr) {
    for_each_statement(hook->statements,
                       [&](const Statement& statement) { told.insert(&statement); });
  }
  if (hook != nullptr && automatic) {
    add_problem(preparation, Kind::warning, hook->place,
                fmt::format("`configure_gradient_clipping` does not change how gradients are "
                            "clipped: {} clips within its own step",
                            entry.class_name),
                remedy, ignored_code);
  }
  for_each_statement(*program, [&](const Statement& statement) {
    if (statement.kind == StatementKind::clip_gradients && !told.contains(&statement)) {
      add_problem(preparation, Kind::warning, statement.place,
                  fmt::format("`clip_gradients` clips nothing: {} clips within its own step",
                              entry.class_name),
                  remedy, ignored_code);
    }
  });
}

// _format_batch_size_and_grad_accum_config fills in the Trainer's only where there is none.
void note_configured_clipping(Preparation& preparation, const GradientClipping& of_trainer) {
  const auto& configured = preparation.configured_clipping;
  const auto& given = preparation.scenario->trainer->gradient_clip_val;
  if (!configured || !given || of_trainer.limit == configured->limit) {
    return;
  }
  add_problem(preparation, Kind::note, given->place,
              fmt::format("`gradient_clip_val` {} has no effect: `gradient_clipping` of the "
                          "strategy's own configuration holds, which {}",
                          of_trainer.limit, text_of_clipping(*configured)),
              "give one of the two alone");
}

}  // namespace lockstep
