#include "model/user_program/bare_program.hpp"

#include "model/user_program/interpreter.hpp"

namespace lockstep {

namespace {

Program run(Rank& rank, std::shared_ptr<const BareProgram> program) {
  RankLog& log = program->log->ranks[rank.place().rank.value];
  Interpreter interpreter(rank, program->settings, log, nullptr);
  Frame frame;
  rank.reached({"main"});
  co_await interpreter.open();
  co_await interpreter.run(program->scenario->program->find("main")->statements, frame);
  interpreter.tell_unwaited();
  co_await interpreter.streams().synchronize_all();
  co_await interpreter.close();
}

}  // namespace

ProgramOfRank bare_program(std::shared_ptr<const BareProgram> program) {
  return [program](Rank& rank) { return run(rank, program); };
}

}  // namespace lockstep
