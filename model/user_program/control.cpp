// Functions, exceptions that are caught, and host threads of one rank.
#include <fmt/core.h>

#include <algorithm>
#include <exception>

#include "model/scenario/program_spec.hpp"
#include "model/user_program/interpreter.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

/// sys.getrecursionlimit().
constexpr int most_calls_open = 1000;
constexpr size_t most_threads = 1000;

}  // namespace

// The names of a function are those of its caller: a function here has no arguments.
Task<Flow> Interpreter::call_function(const Statement& statement, Frame& frame) {
  const Hook* function = context_.settings.functions->find_function(statement.name->value);
  ensure(function != nullptr, "the loader has found every function");
  if (calls_open_ == most_calls_open) {
    fail_at(context_.log, site_of(statement),
            fmt::format("maximum recursion depth exceeded: `{}` is the {}th call inside of others",
                        function->name, most_calls_open + 1),
            "end the recursion with `if` and `return`");
  }
  ++calls_open_;
  std::exception_ptr failure;
  try {
    co_await run(function->statements, frame);
  } catch (...) {
    failure = std::current_exception();
  }
  --calls_open_;
  if (failure) {
    std::rethrow_exception(failure);
  }
  co_return Flow::next;
}

// What Python's `except Exception` catches. The log keeps no error that the user has caught.
Task<Flow> Interpreter::attempt(const Statement& statement, Frame& frame) {
  const std::vector<StatementFinding> before = context_.log.findings;
  bool caught = false;
  Flow flow = Flow::next;
  try {
    flow = co_await run(statement.body, frame);
  } catch (const ProgramExit&) {
    throw;
  } catch (const ProgramException&) {
    if (!context_.log.findings.empty() && context_.log.findings.back().code == "unsupported") {
      throw;
    }
    caught = true;
  } catch (const RankFailure& error) {
    // Gloo raises where a peer has gone; NCCL's watchdog ends the process.
    if (!context_.settings.gloo || error.outcome() != Outcome::failed) {
      throw;
    }
    caught = true;
  }
  if (!caught) {
    co_return flow;
  }
  std::erase_if(context_.log.findings, [&](const StatementFinding& finding) {
    const bool is_error = finding.code == "evaluation" || finding.code == "unbound";
    return is_error && std::ranges::none_of(before, [&](const StatementFinding& known) {
             return known.code == finding.code && known.site == finding.site;
           });
  });
  co_return co_await run(statement.otherwise, frame);
}

// The rank goes on when all threads have ended, and raises what the first of them that failed
// raised, as `Future.result()` of concurrent.futures does.
Program Interpreter::run_threads(const Statement& statement, Frame& frame) {
  if (threads_started_ + statement.body.size() > most_threads) {
    lack_at(context_.log, site_of(statement),
            fmt::format("more than {} host threads of one rank", most_threads),
            "start fewer of them");
  }
  threads_started_ += statement.body.size();
  std::vector<Ticket> ended;
  std::vector<LaneId> lanes;
  std::vector<std::shared_ptr<std::exception_ptr>> failures;
  for (const Statement& thread : statement.body) {
    ended.push_back(context_.rank.promise());
    failures.push_back(std::make_shared<std::exception_ptr>());
    lanes.push_back(
        context_.rank.start_lane(run_thread(thread, frame, ended.back(), failures.back())).id());
    threads_.begin(lanes.back());
  }
  co_await context_.rank.settle_all(ended);
  threads_.end(statement, lanes);
  for (const auto& failure : failures) {
    if (*failure) {
      std::rethrow_exception(*failure);
    }
  }
}

Program Interpreter::run_thread(const Statement& thread, Frame& frame, Ticket done,
                                std::shared_ptr<std::exception_ptr> failure) {
  try {
    co_await run(thread.body, frame);
  } catch (const ProgramException&) {
    *failure = std::current_exception();
  }
  context_.rank.fulfil(done);
}

}  // namespace lockstep
