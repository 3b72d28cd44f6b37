#pragma once

#include <functional>

#include "model/scenario/program_spec.hpp"

namespace lockstep {

/// Visits every statement, a statement before what it holds.
void for_each_statement(const std::vector<Statement>& statements,
                        const std::function<void(const Statement&)>& visit);
void for_each_statement(const ProgramSpec& program,
                        const std::function<void(const Statement&)>& visit);

/// The first statement of this kind, in `main` or any hook, or in one; null where there is none.
const Statement* find_statement(const ProgramSpec& program, StatementKind kind);
const Statement* find_statement(const Hook& hook, StatementKind kind);
/// The first of this kind in a hook, or in the functions that it calls, directly or through others.
const Statement* find_reached_statement(const ProgramSpec& program, const Hook& hook,
                                        StatementKind kind);

/// Visits every expression of this statement; not of the statements that it holds.
void for_each_expression(const Statement& statement,
                         const std::function<void(const Expression&)>& visit);

}  // namespace lockstep
