// The statements themselves, in order; each family of statements has its own file.
#include "model/user_program/interpreter.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/expression/arithmetic.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_count.hpp"
#include "model/user_program/statement_failure.hpp"

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

}  // namespace

Interpreter::Interpreter(Rank& rank, const ProgramSettings& settings, RankLog& log,
                         TrainerScope* trainer)
    : context_{rank, settings, log, trainer},
      tensors_(rank),
      streams_(rank, tensors_),
      names_(context_, tensors_, streams_),
      checks_(log, tensors_),
      locations_(context_, names_),
      tape_(names_),
      backward_(context_, tensors_, streams_),
      expressions_(context_, names_, tape_, {tensors_, streams_, checks_, locations_}),
      started_(context_, tensors_),
      threads_(context_),
      communication_(parts()),
      device_(parts()) {}

StatementParts Interpreter::parts() {
  return {context_,   tensors_, streams_,     names_,   checks_,
          locations_, tape_,    expressions_, started_, threads_};
}

Task<Flow> Interpreter::run(const std::vector<Statement>& statements, Frame& frame) {
  for (const Statement& statement : statements) {
    count_statement(context_.settings, context_.log);
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
  if (context_.settings.value_budget != nullptr) {
    context_.settings.value_budget->executing(site);
    if (context_.settings.value_budget->exceeded()) {
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
    case Kind::recv:
    case Kind::batch_isend_irecv:
    case Kind::grouped:
    case Kind::barrier:
    case Kind::join:
    case Kind::new_group:
    case Kind::wait: co_await communication_.run(statement, frame); break;
    case Kind::wait_stream: device_.wait_stream(statement); break;
    case Kind::synchronize: co_await device_.synchronize(statement); break;
    case Kind::empty_cache: co_await streams_.synchronize_all(); break;
    case Kind::item: co_await device_.item(statement, frame); break;
    case Kind::kernel: co_await device_.kernel(statement, frame); break;
    case Kind::host: co_await device_.host(statement, frame); break;
    case Kind::copy: co_await device_.copy(statement, frame); break;
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
      ensure(context_.trainer != nullptr, "a bare program has no statement of the trainer");
      co_return co_await context_.trainer->run(statement, frame);
  }
  co_return Flow::next;
}

void Interpreter::leave(Frame& frame, SiteId hook) {
  tensors_.begins(hook);
  frame.clear();
  streams_.release_exposed();
}

Task<Flow> Interpreter::branch(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const bool holds = co_await expressions_.condition_of(statement.expression->value, frame, site);
  const uint32_t taken = context_.rank.choose(site, ChoiceKind::branch, 2, holds ? 1 : 0);
  const Inside inside(guards_);
  co_return co_await run(taken == 1 ? statement.body : statement.otherwise, frame);
}

Task<Flow> Interpreter::repeat(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const int64_t asked = co_await expressions_.integer_of(statement.expression->value, frame, site,
                                                         "the number of repetitions");
  const auto local = static_cast<uint32_t>(std::clamp<int64_t>(asked, 0, most_repetitions - 1));
  const uint32_t count = context_.rank.choose(site, ChoiceKind::repeat, most_repetitions, local);
  for (uint32_t index = 0; index < count; ++index) {
    count_statement(context_.settings, context_.log);
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
      fail_at(context_.log, site, "`" + binding.name + "` is no list",
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
    context_.log.add({"assert", site, "`" + expression.text() + "` is false", ""});
  }
}

}  // namespace lockstep
