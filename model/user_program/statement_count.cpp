#include "model/user_program/statement_count.hpp"

#include "model/core/failure.hpp"

namespace lockstep {

namespace {

constexpr int64_t statements_between_looks = 64;

}  // namespace

void count_statement(const ProgramSettings& settings, RankLog& log) {
  if (++log.statements > settings.statement_limit) {
    log.statement_limit_reached = true;
    throw StatementLimit(settings.statement_limit);
  }
  if (settings.stop_asked && log.statements % statements_between_looks == 0 &&
      settings.stop_asked()) {
    throw StopAsked();
  }
}

}  // namespace lockstep
