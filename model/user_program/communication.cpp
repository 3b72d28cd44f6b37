// Communication: how calls are put on streams, what waits for them, and how groups are made.
#include <fmt/core.h>

#include <algorithm>

#include "model/expression/arithmetic.hpp"
#include "model/user_program/interpreter.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

constexpr size_t most_dropped_tensors = 1024;

bool orders_with_compute(StreamId on) {
  return on == communication_stream || queue::of_group(on.queue()) || queue::of_sends(on.queue()) ||
         queue::of_receives(on.queue());
}

}  // namespace

// All of NCCL's calls are issued on one stream, so that two groups that are entered in
// a different order are reported: their kernels may each hold what the other's need.
StreamId Interpreter::stream_of_call(const Statement& statement, const Op& op) {
  const bool has_queue = settings_.gloo && !statement.stream;
  return has_queue ? gloo_queues_.of(op) : stream_of(statement, communication_stream);
}

StreamId Interpreter::stream_of(const Statement& statement, StreamId otherwise) const {
  return statement.stream ? stream_named(settings_, statement.stream->value) : otherwise;
}

// Memory of tensors that nobody names any more is bounded, as an allocator's is.
Program Interpreter::limit_dropped() {
  if (tensors_.waiting() <= most_dropped_tensors) {
    co_return;
  }
  const std::map<StreamId, Ticket> uses = tensors_.oldest_uses();
  tensors_.settled(compute_stream, Ticket{});
  for (const auto& [on, ticket] : uses) {
    co_await streams_.settle(ticket, on);
  }
}

Program Interpreter::communicate(const Statement& statement, Frame& frame) {
  co_await limit_dropped();
  if (settings_.meets_by_name) {
    co_await communicate_by_name(statement, frame);
    co_return;
  }
  if (lacks_process_group()) {
    co_await communicate_without_group(statement, frame);
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
  std::vector<Call> calls;
  Call call = co_await call_of(statement, frame);
  calls.push_back(std::move(call));
  co_await submit(statement, frame, calls);
}

// all_gather of a collection is one call for each of its tensors (Lightning's apply_to_collection).
Program Interpreter::communicate_list(const Statement& statement, Frame& frame,
                                      Variable::List parts) {
  Variable::List results;
  for (const Variable& part : parts) {
    const NamedTensor data = co_await part_of_list(part, site_of(statement));
    std::vector<Call> calls;
    Call call = co_await call_with(statement, frame, data);
    Variable result{call.result, call.gradient};
    call.name.clear();
    calls.push_back(std::move(call));
    co_await submit(statement, frame, calls);
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
Program Interpreter::communicate_grouped(const Statement& statement, Frame& frame) {
  co_await limit_dropped();
  if (lacks_process_group()) {
    raise_without_group(site_of(statement));
  }
  check_batch(statement);
  std::vector<Call> calls;
  for (const Statement& part : statement.body) {
    count_statement();
    Call call = co_await call_of(part, frame);
    calls.push_back(std::move(call));
  }
  if (!settings_.gloo || statement.kind != StatementKind::batch_isend_irecv) {
    co_await submit(statement, frame, calls);
    co_return;
  }
  Variable::List works;
  std::vector<std::pair<Ticket, StreamId>> posted;
  for (Call& call : calls) {
    if (!call.does_nothing) {
      std::vector<Call> one;
      one.push_back(std::move(call));
      const Ticket ticket = post(statement, one);
      posted.emplace_back(ticket, one.front().stream);
      works.push_back(Variable{mark(statement, frame, one, ticket)});
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
void Interpreter::check_batch(const Statement& statement) const {
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

// c10d: the communicator's stream first waits for the current one (ProcessGroupNCCL's syncStream),
// and Work.wait() makes the current one wait for it; a stream that the user names is itself
// current.
Program Interpreter::submit(const Statement& statement, Frame& frame, std::vector<Call>& calls) {
  std::erase_if(calls, [](const Call& call) { return call.does_nothing; });
  if (calls.empty()) {
    co_return;
  }
  const StreamId on = calls.front().stream;
  const Ticket ticket = post(statement, calls);
  mark(statement, frame, calls, ticket);
  const bool asynchronous = value_or(statement.asynchronous, false);
  if (!asynchronous && orders_with_compute(on)) {
    streams_.let_wait(compute_stream, on, ticket);
  }
  if (!asynchronous && settings_.gloo) {
    co_await streams_.settle(ticket, on);
  }
}

Ticket Interpreter::post(const Statement& statement, const std::vector<Call>& calls) {
  const SiteId site = site_of(statement);
  const StreamId on = calls.front().stream;
  std::vector<Ticket> after = streams_.take_waits(on);
  if (orders_with_compute(on)) {
    after.push_back(streams_.tail_of_compute(site));
    tensors_.ordered(on, compute_stream, after.back());
  }
  for (const Call& call : calls) {
    if (call.data && call.data->being_written()) {
      after.push_back(call.data->written_by->ticket);
    }
  }
  for (const Call& call : calls) {
    if (call.needs_copy) {
      KernelCall copied;
      copied.kernel = Kernel::copy;
      copied.memory_traffic = call.data->slice.bytes() * 2;
      copied.reads = {&call.data->slice, 1};
      copied.writes = {&call.result->slice, 1};
      streams_.submitted(on, rank_.compute(copied, {on, After(after), site}));
    }
  }
  GroupedCall grouped(rank_, {on, After(after), site});
  for (const Call& call : calls) {
    note_call_of_thread(call.op.kind, call.op.group, site);
    grouped.add(call.op, call.read, call.write, call.splits);
  }
  const Ticket ticket = grouped.submit();
  streams_.submitted(on, ticket);
  return ticket;
}

std::shared_ptr<PendingWork> Interpreter::mark(const Statement& statement, Frame& frame,
                                               std::vector<Call>& calls, Ticket ticket) {
  const StreamId on = calls.front().stream;
  std::shared_ptr<PendingWork> work;
  if (value_or(statement.asynchronous, false)) {
    work = start_work(statement, ticket, on);
    const bool many = statement.kind == StatementKind::batch_isend_irecv ||
                      statement.kind == StatementKind::grouped;
    const bool nameless = many || statement.kind == StatementKind::send;
    if (nameless && statement.result) {
      names_.bind(statement.result->value, Variable{work}, frame);
    }
  }
  for (Call& call : calls) {
    if (call.data) {
      call.data->uses[on] = ticket;
      expose_to_call(statement, *call.data, on, work);
      if (work) {
        call.data->read_by = work;
        // With `as` a copy is reduced; the user's own call would have written the data itself.
        call.data->written_by = call.in_place ? work : call.data->written_by;
      }
    }
    if (call.result) {
      call.result->uses[on] = ticket;
      expose_to_call(statement, *call.result, on, work);
      call.result->ready = ticket;
      call.result->ready_on = on;
      call.result->written_by = work;
      call.result->left_undefined =
          settings_.gloo && call.op.kind == OpKind::reduce && call.op.peer != rank_.id();
      if (!call.name.empty()) {
        names_.bind(call.name, Variable{call.result, call.gradient}, frame);
      }
    } else if (call.op.kind == OpKind::gather && statement.result) {
      names_.bind(statement.result->value, work ? Variable{work} : Variable{Value()}, frame);
    }
  }
  return work;
}

// NCCL has no barrier: c10d reduces one float and lets the host wait for it.
Program Interpreter::barrier(const Statement& statement, Frame& frame) {
  if (settings_.meets_by_name) {
    co_await meet(statement, RequestKind::barrier);
    co_return;
  }
  if (lacks_process_group()) {
    raise_without_group(site_of(statement));
  }
  const Group group = group_of(statement, frame);
  if (!group.has(rank_.id())) {
    co_return;
  }
  const SiteId site = site_of(statement);
  const StreamId on = settings_.gloo ? gloo_queues_.of_group(group.id) : communication_stream;
  const std::vector<Ticket> after = streams_.take_waits_after_compute(on, site);
  const CommunicationOptions options{on, After(after), site};
  note_call_of_thread(OpKind::barrier, group.id, site);
  const Ticket ticket = settings_.gloo ? rank_.barrier(group.id, options)
                                       : rank_.all_reduce(group.id, Slice::of_size(DType::fp32, 1),
                                                          Reduction::sum, options);
  streams_.submitted(on, ticket);
  if (!value_or(statement.asynchronous, false)) {
    co_await streams_.settle(ticket, on);
    co_return;
  }
  const std::shared_ptr<PendingWork> work = start_work(statement, ticket, on);
  work->holds_host = true;
  if (statement.result) {
    names_.bind(statement.result->value, Variable{work}, frame);
  }
}

Program Interpreter::wait(const Statement& statement, Frame& frame) {
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
      const TensorPointer result = co_await finish(*work->handle, site);
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
