#pragma once

#include "model/user_program/expression_values.hpp"
#include "model/user_program/started_work.hpp"
#include "model/user_program/thread_calls.hpp"

namespace lockstep {

/// What the families of statements are made with; each keeps what it uses. All outlives them.
struct StatementParts {
  StatementContext context;
  TensorStore& tensors;
  StreamOrder& streams;
  ModuleNames& names;
  TensorChecks& checks;
  Locations& locations;
  GradientTape& tape;
  ExpressionValues& expressions;
  StartedWork& started;
  ThreadCalls& threads;
};

}  // namespace lockstep
