// The statements themselves, in order; each family of statements has its own file.
#include "model/user_program/interpreter.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/expression/arithmetic.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

/// Counts how deep statements are nested, also where one of them raises.
class Inside {
 public:
  explicit Inside(int32_t& depth) : depth_(depth) { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  int32_t& depth_;
};

constexpr uint32_t most_repetitions = 1u << 30;
constexpr int64_t statements_between_looks = 64;

}  // namespace

StreamId stream_named(const ProgramSettings& settings, const std::string& name) {
  if (name == "comm") {
    return communication_stream;
  }
  if (name == "compute") {
    return compute_stream;
  }
  const auto found = settings.queues.find(name);
  ensure(found != settings.queues.end(), "every stream of a scenario has a queue");
  return stream(found->second);
}

Interpreter::Interpreter(Rank& rank, const ProgramSettings& settings, RankLog& log,
                         TrainerScope* trainer)
    : rank_(rank),
      settings_(settings),
      log_(log),
      trainer_(trainer),
      tensors_(rank),
      streams_(rank, tensors_),
      names_({rank, settings, log, trainer}, tensors_, streams_),
      checks_(log, tensors_),
      locations_({rank, settings, log, trainer}, names_),
      tape_(names_),
      backward_({rank, settings, log, trainer}, tensors_, streams_),
      expressions_({rank, settings, log, trainer}, names_, tape_,
                   {tensors_, streams_, checks_, locations_}),
      named_(rank) {}

void Interpreter::count_statement() {
  if (++log_.statements > settings_.statement_limit) {
    log_.statement_limit_reached = true;
    throw StatementLimit(settings_.statement_limit);
  }
  if (settings_.stop_asked && log_.statements % statements_between_looks == 0 &&
      settings_.stop_asked()) {
    throw StopAsked();
  }
}

Task<Flow> Interpreter::run(const std::vector<Statement>& statements, Frame& frame) {
  for (const Statement& statement : statements) {
    count_statement();
    Flow flow = Flow::next;
    try {
      flow = co_await execute(statement, frame);
    } catch (const OutOfMemory& error) {
      if (error.site() != no_site) {
        throw;
      }
      // An allocation does not know for which statement it is made.
      throw OutOfMemory(site_of(statement), error.asked(), error.held(), error.capacity());
    }
    streams_.release_exposed();
    if (flow == Flow::returned) {
      co_return Flow::returned;
    }
  }
  co_return Flow::next;
}

Task<Flow> Interpreter::execute(const Statement& statement, Frame& frame) {
  using Kind = StatementKind;
  const SiteId site = site_of(statement);
  if (settings_.value_budget != nullptr) {
    settings_.value_budget->executing(site);
    if (settings_.value_budget->exceeded()) {
      throw StopAsked();
    }
  }
  tensors_.begins(site);
  switch (statement.kind) {
    case Kind::all_reduce:
    case Kind::reduce_scatter:
    case Kind::all_gather:
    case Kind::broadcast:
    case Kind::scatter:
    case Kind::reduce:
    case Kind::gather:
    case Kind::all_to_all:
    case Kind::send:
    case Kind::recv: co_await communicate(statement, frame); break;
    case Kind::batch_isend_irecv:
    case Kind::grouped: co_await communicate_grouped(statement, frame); break;
    case Kind::barrier: co_await barrier(statement, frame); break;
    case Kind::join: co_await meet(statement, RequestKind::join); break;
    case Kind::new_group: co_await new_group(statement, frame); break;
    case Kind::wait: co_await wait(statement, frame); break;
    case Kind::wait_stream: wait_stream(statement); break;
    case Kind::synchronize:
      if (statement.stream) {
        co_await streams_.synchronize(stream_of(statement, compute_stream), site_of(statement));
      } else {
        co_await streams_.synchronize_all();
      }
      break;
    case Kind::empty_cache: co_await streams_.synchronize_all(); break;
    case Kind::item: co_await item(statement, frame); break;
    case Kind::kernel: co_await kernel(statement, frame); break;
    case Kind::host: co_await host(statement, frame); break;
    case Kind::copy: co_await copy(statement, frame); break;
    case Kind::let: co_await assign(statement, frame); break;
    case Kind::append: co_await append(statement, frame); break;
    case Kind::del:
      for (const std::string& name : statement.names->value) {
        names_.unbind(name, frame, site);
      }
      break;
    case Kind::assertion: co_await check_assertion(statement, frame); break;
    case Kind::branch: co_return co_await branch(statement, frame);
    case Kind::repeat: co_return co_await repeat(statement, frame);
    case Kind::return_hook: co_return Flow::returned;
    case Kind::raise: throw ProgramException(site, value_or(statement.text, std::string()));
    case Kind::call: co_return co_await call_function(statement, frame);
    case Kind::attempt: co_return co_await attempt(statement, frame);
    case Kind::threads: co_await run_threads(statement, frame); break;
    default:
      ensure(trainer_ != nullptr, "a bare program has no statement of the trainer");
      co_return co_await trainer_->run(statement, frame);
  }
  co_return Flow::next;
}

Task<Flow> Interpreter::branch(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const bool holds = co_await expressions_.condition_of(statement.expression->value, frame, site);
  const uint32_t taken = rank_.choose(site, ChoiceKind::branch, 2, holds ? 1 : 0);
  const Inside inside(guards_);
  co_return co_await run(taken == 1 ? statement.body : statement.otherwise, frame);
}

Task<Flow> Interpreter::repeat(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const int64_t asked = co_await expressions_.integer_of(statement.expression->value, frame, site,
                                                         "the number of repetitions");
  const auto local = static_cast<uint32_t>(std::clamp<int64_t>(asked, 0, most_repetitions - 1));
  const uint32_t count = rank_.choose(site, ChoiceKind::repeat, most_repetitions, local);
  for (uint32_t index = 0; index < count; ++index) {
    count_statement();
    if (statement.result) {
      names_.bind(statement.result->value, Variable{Value(index)}, frame);
    }
    const Flow flow = co_await run(statement.body, frame);
    if (flow == Flow::returned) {
      co_return Flow::returned;
    }
  }
  co_return Flow::next;
}

Program Interpreter::assign(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  for (const Binding& binding : statement.bindings) {
    Variable variable = co_await expressions_.variable_of(binding.expression, frame, site);
    names_.bind(binding.name, std::move(variable), frame);
    names_.check_replica(binding.name, site);
  }
}

Program Interpreter::append(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  for (const Binding& binding : statement.bindings) {
    Variable item = co_await expressions_.variable_of(binding.expression, frame, site);
    Variable* list = names_.find(binding.name, frame);
    if (list == nullptr) {
      names_.bind(binding.name, Variable{Variable::List{}}, frame);
      list = names_.find(binding.name, frame);
    }
    const Value* plain = std::get_if<Value>(&list->content);
    if (plain != nullptr && plain->is(Value::Kind::list)) {
      Variable::List items;
      for (const Value& each : plain->list()) {
        items.push_back(Variable{each});
      }
      list->content = std::move(items);
    }
    auto* items = std::get_if<Variable::List>(&list->content);
    if (items == nullptr) {
      fail_at(log_, site, "`" + binding.name + "` is no list",
              "bind it with `append` only, or to []");
    }
    items->push_back(std::move(item));
    names_.list_grew(binding.name);
    names_.check_replica(binding.name, site);
  }
}

Program Interpreter::check_assertion(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const Expression& expression = statement.expression->value;
  const bool holds = co_await expressions_.condition_of(expression, frame, site);
  if (!holds) {
    log_.add({"assert", site, "`" + expression.text() + "` is false", ""});
  }
}

}  // namespace lockstep
