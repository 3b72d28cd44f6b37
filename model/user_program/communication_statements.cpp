#include "model/user_program/communication_statements.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/expression/arithmetic.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_count.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

constexpr size_t most_dropped_tensors = 1024;

}  // namespace

CommunicationStatements::CommunicationStatements(const StatementParts& parts)
    : rank_(parts.context.rank),
      settings_(parts.context.settings),
      log_(parts.context.log),
      tensors_(parts.tensors),
      streams_(parts.streams),
      names_(parts.names),
      expressions_(parts.expressions),
      started_(parts.started),
      threads_(parts.threads),
      data_(parts),
      groups_(parts),
      calls_(parts, groups_),
      submission_(parts),
      by_name_(parts, data_),
      without_group_(parts, data_) {}

Program CommunicationStatements::run(const Statement& statement, Frame& frame) {
  switch (statement.kind) {
    case StatementKind::batch_isend_irecv:
    case StatementKind::grouped: return communicate_grouped(statement, frame);
    case StatementKind::barrier: return barrier(statement, frame);
    case StatementKind::join: return by_name_.meet(statement, RequestKind::join);
    case StatementKind::new_group: return new_group(statement, frame);
    case StatementKind::wait: return wait(statement, frame);
    default: return communicate(statement, frame);
  }
}

Program CommunicationStatements::new_group(const Statement& statement, Frame& frame) {
  without_group_.check_process_group(site_of(statement));
  co_await groups_.new_group(statement, frame);
}

// Memory of tensors that nobody names any more is bounded, as an allocator's is.
Program CommunicationStatements::limit_dropped() {
  if (tensors_.waiting() <= most_dropped_tensors) {
    co_return;
  }
  const std::map<StreamId, Ticket> uses = tensors_.oldest_uses();
  tensors_.settled(compute_stream, Ticket{});
  for (const auto& [on, ticket] : uses) {
    co_await streams_.settle(ticket, on);
  }
}

Program CommunicationStatements::communicate(const Statement& statement, Frame& frame) {
  co_await limit_dropped();
  if (settings_.meets_by_name) {
    co_await by_name_.communicate(statement, frame);
    co_return;
  }
  if (without_group_.lacks_process_group()) {
    co_await without_group_.communicate(statement, frame);
    co_return;
  }
  if (statement.kind == StatementKind::all_gather && statement.communication.tensor) {
    const Expression& data = statement.communication.tensor->value;
    const bool may_be_list = data.root().kind == ExpressionNode::Kind::name ||
                             data.root().kind == ExpressionNode::Kind::list;
    if (may_be_list) {
      Variable variable = co_await expressions_.variable_of(data, frame, site_of(statement));
      if (auto* parts = std::get_if<Variable::List>(&variable.content)) {
        co_await communicate_list(statement, frame, std::move(*parts));
        co_return;
      }
    }
  }
  std::vector<CommunicationCall> calls;
  const NamedTensor data = co_await data_.of(statement, frame);
  CommunicationCall call = co_await calls_.with(statement, frame, data);
  calls.push_back(std::move(call));
  co_await submission_.submit(statement, frame, calls);
}

// all_gather of a collection is one call for each of its tensors (Lightning's apply_to_collection).
Program CommunicationStatements::communicate_list(const Statement& statement, Frame& frame,
                                                  Variable::List parts) {
  Variable::List results;
  for (const Variable& part : parts) {
    const NamedTensor data = co_await data_.of_part(part, site_of(statement));
    std::vector<CommunicationCall> calls;
    CommunicationCall call = co_await calls_.with(statement, frame, data);
    Variable result{call.result, call.gradient};
    call.name.clear();
    calls.push_back(std::move(call));
    co_await submission_.submit(statement, frame, calls);
    results.push_back(std::move(result));
  }
  if (statement.result) {
    names_.bind(statement.result->value, Variable{std::move(results)}, frame);
  } else if (statement.communication.tensor->value.root().kind == ExpressionNode::Kind::name) {
    names_.bind(statement.communication.tensor->value.root().name, Variable{std::move(results)},
                frame);
  }
}

// batch_isend_irecv is one call of NCCL; with Gloo it posts each message for itself.
Program CommunicationStatements::communicate_grouped(const Statement& statement, Frame& frame) {
  co_await limit_dropped();
  without_group_.check_process_group(site_of(statement));
  check_batch(statement);
  std::vector<CommunicationCall> calls;
  for (const Statement& part : statement.body) {
    count_statement(settings_, log_);
    const NamedTensor data = co_await data_.of(part, frame);
    CommunicationCall call = co_await calls_.with(part, frame, data);
    calls.push_back(std::move(call));
  }
  if (!settings_.gloo || statement.kind != StatementKind::batch_isend_irecv) {
    co_await submission_.submit(statement, frame, calls);
    co_return;
  }
  Variable::List works;
  std::vector<std::pair<Ticket, StreamId>> posted;
  for (CommunicationCall& call : calls) {
    if (!call.does_nothing) {
      std::vector<CommunicationCall> one;
      one.push_back(std::move(call));
      const Ticket ticket = submission_.post(statement, one);
      posted.emplace_back(ticket, one.front().stream);
      works.push_back(Variable{submission_.mark(statement, frame, one, ticket)});
    }
  }
  if (!value_or(statement.asynchronous, false)) {
    for (const auto& [ticket, on] : posted) {
      streams_.let_wait(compute_stream, on, ticket);
      co_await streams_.settle(ticket, on);
    }
  } else if (statement.result) {
    names_.bind(statement.result->value, Variable{std::move(works)}, frame);
  }
}

// Checks of torch 2.11, with its messages; assumed to hold from 2.6 on.
void CommunicationStatements::check_batch(const Statement& statement) const {
  if (statement.kind != StatementKind::batch_isend_irecv) {
    return;
  }
  const SiteId site = site_of(statement);
  if (statement.body.empty()) {
    throw ProgramException(site, "list index out of range: batch_isend_irecv without a message");
  }
  if (settings_.torch < Version{2, 6, 0}) {
    return;
  }
  const auto group_of_part = [](const Statement& part) {
    return part.group ? part.group->value : std::string("world");
  };
  for (const Statement& part : statement.body) {
    if (part.communication.any_source) {
      throw ProgramException(site,
                             "Must specify global_rank or group_rank: a receive of "
                             "batch_isend_irecv names its source");
    }
    if (group_of_part(part) != group_of_part(statement.body.front())) {
      throw ProgramException(site, "All ops need to use the same group.");
    }
  }
}

// NCCL has no barrier: c10d reduces one float and lets the host wait for it.
Program CommunicationStatements::barrier(const Statement& statement, Frame& frame) {
  if (settings_.meets_by_name) {
    co_await by_name_.meet(statement, RequestKind::barrier);
    co_return;
  }
  without_group_.check_process_group(site_of(statement));
  const Group group = groups_.of(statement, frame);
  if (!group.has(rank_.id())) {
    co_return;
  }
  const SiteId site = site_of(statement);
  const StreamId on = calls_.stream_of_group(group.id);
  const std::vector<Ticket> after = streams_.take_waits_after_compute(on, site);
  const CommunicationOptions options{on, After(after), site};
  threads_.note(OpKind::barrier, group.id, site);
  const Ticket ticket = settings_.gloo ? rank_.barrier(group.id, options)
                                       : rank_.all_reduce(group.id, Slice::of_size(DType::fp32, 1),
                                                          Reduction::sum, options);
  streams_.submitted(on, ticket);
  if (!value_or(statement.asynchronous, false)) {
    co_await streams_.settle(ticket, on);
    co_return;
  }
  const std::shared_ptr<PendingWork> work = started_.start(statement, ticket, on);
  work->holds_host = true;
  if (statement.result) {
    names_.bind(statement.result->value, Variable{work}, frame);
  }
}

Program CommunicationStatements::wait(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const std::string& name = statement.name->value;
  const Variable* variable = names_.find(name, frame);
  std::vector<std::shared_ptr<PendingWork>> works;
  std::vector<const Variable*> open;
  if (variable != nullptr) {
    open.push_back(variable);
  }
  while (!open.empty()) {
    const Variable& next = *open.back();
    open.pop_back();
    if (const auto* work = std::get_if<std::shared_ptr<PendingWork>>(&next.content)) {
      works.push_back(*work);
    } else if (const auto* tensor = std::get_if<TensorPointer>(&next.content)) {
      works.push_back((*tensor)->written_by);
      works.push_back((*tensor)->read_by);
    } else if (const auto* list = std::get_if<Variable::List>(&next.content)) {
      for (const Variable& item : *list) {
        open.push_back(&item);
      }
    } else {
      fail_at(log_, site, fmt::format("`{}` is not something to wait for", name), "");
    }
  }
  if (variable == nullptr) {
    fail_at(log_, site, fmt::format("`{}` is not bound here", name),
            "start the work with `as` first");
  }
  for (const std::shared_ptr<PendingWork>& work : works) {
    if (work && !work->waited && work->handle) {
      work->waited = true;
      const TensorPointer result = co_await by_name_.finish(*work->handle, site);
      if (variable == names_.find(name, frame) && variable != nullptr &&
          std::holds_alternative<std::shared_ptr<PendingWork>>(variable->content)) {
        names_.bind(name, Variable{result}, frame);  // of all_gather: its size was not known before
      }
    } else if (work && !work->waited) {
      work->waited = true;
      streams_.let_wait(compute_stream, work->stream, work->ticket);
      if (settings_.gloo || work->holds_host) {
        co_await streams_.settle(work->ticket, work->stream);
      }
    }
  }
}

}  // namespace lockstep
