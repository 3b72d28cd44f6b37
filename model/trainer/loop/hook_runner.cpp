#include "model/trainer/loop/hook_runner.hpp"

#include <exception>
#include <utility>

#include "model/user_program/sites.hpp"

namespace lockstep {

HookRunner::HookRunner(const TrainingProgram& program, Interpreter& interpreter,
                       Termination& termination)
    : program_(program), interpreter_(interpreter), termination_(termination) {}

const Hook* HookRunner::find(std::string_view name) const {
  return program_.scenario->program ? program_.scenario->program->find(name) : nullptr;
}

Program HookRunner::begin_epoch(int64_t epoch) {
  position_.epoch = epoch;
  return stand_at(position_);
}

Program HookRunner::begin_step(int64_t step) {
  position_.step = step;
  return stand_at(position_);
}

Program HookRunner::begin(std::string_view name) {
  Position position = position_;
  position.hook = name;
  return stand_at(position);
}

Program HookRunner::stand_at(Position position) {
  if (interpreter_.rank().reached(position) == ProcessSignal::terminate) {
    co_await termination_.handle();
  }
}

Task<Flow> HookRunner::run_body(std::string_view name, Frame& frame) {
  const Hook* found = find(name);
  if (found == nullptr) {
    co_return Flow::next;
  }
  interpreter_.log().hooks.emplace(name);
  const std::string outer = std::exchange(current_, std::string(name));
  std::exception_ptr failure;
  Flow flow = Flow::next;
  try {
    flow = co_await interpreter_.run(found->statements, frame);
  } catch (...) {
    failure = std::current_exception();
  }
  current_ = outer;
  if (failure) {
    std::rethrow_exception(failure);
  }
  co_return flow;
}

Task<Flow> HookRunner::run(std::string_view name) {
  Frame frame;
  const Flow flow = co_await run_with(name, frame);
  leave(name, frame);
  co_return flow;
}

Task<Flow> HookRunner::run_with(std::string_view name, Frame& frame) {
  co_await begin(name);
  co_return co_await run_body(name, frame);
}

// The script ends with the process: nothing gets its memory.
void HookRunner::leave(std::string_view name, Frame& frame) {
  const Hook* found = find(name);
  if (found != nullptr && name != "main") {
    interpreter_.leave(frame, site_of(found->place));
  }
}

Program HookRunner::run_with_outputs(std::string_view name, Variable::List outputs) {
  Frame frame;
  frame["outputs"] = Variable{std::move(outputs)};
  co_await run_with(name, frame);
  leave(name, frame);
}

Program HookRunner::run_of_1_x(std::string_view name) {
  if (program_.trainer.lightning < Version{1, 8, 0}) {
    co_await run(name);
  }
}

}  // namespace lockstep
