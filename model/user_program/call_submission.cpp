#include "model/user_program/call_submission.hpp"

#include <algorithm>

#include "model/user_program/exposure.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

bool orders_with_compute(StreamId on) {
  return on == communication_stream || queue::of_group(on.queue()) || queue::of_sends(on.queue()) ||
         queue::of_receives(on.queue());
}

}  // namespace

CallSubmission::CallSubmission(const StatementParts& parts)
    : rank_(parts.context.rank),
      settings_(parts.context.settings),
      tensors_(parts.tensors),
      streams_(parts.streams),
      names_(parts.names),
      started_(parts.started),
      threads_(parts.threads) {}

Program CallSubmission::submit(const Statement& statement, Frame& frame,
                               std::vector<CommunicationCall>& calls) {
  std::erase_if(calls, [](const CommunicationCall& call) { return call.does_nothing; });
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

Ticket CallSubmission::post(const Statement& statement,
                            const std::vector<CommunicationCall>& calls) {
  const SiteId site = site_of(statement);
  const StreamId on = calls.front().stream;
  std::vector<Ticket> after = streams_.take_waits(on);
  if (orders_with_compute(on)) {
    after.push_back(streams_.tail_of_compute(site));
    tensors_.ordered(on, compute_stream, after.back());
  }
  for (const CommunicationCall& call : calls) {
    if (call.data && call.data->being_written()) {
      after.push_back(call.data->written_by->ticket);
    }
  }
  for (const CommunicationCall& call : calls) {
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
  for (const CommunicationCall& call : calls) {
    threads_.note(call.op.kind, call.op.group, site);
    grouped.add(call.op, call.read, call.write, call.splits);
  }
  const Ticket ticket = grouped.submit();
  streams_.submitted(on, ticket);
  return ticket;
}

std::shared_ptr<PendingWork> CallSubmission::mark(const Statement& statement, Frame& frame,
                                                  std::vector<CommunicationCall>& calls,
                                                  Ticket ticket) {
  const StreamId on = calls.front().stream;
  std::shared_ptr<PendingWork> work;
  if (value_or(statement.asynchronous, false)) {
    work = started_.start(statement, ticket, on);
    const bool many = statement.kind == StatementKind::batch_isend_irecv ||
                      statement.kind == StatementKind::grouped;
    const bool nameless = many || statement.kind == StatementKind::send;
    if (nameless && statement.result) {
      names_.bind(statement.result->value, Variable{work}, frame);
    }
  }
  for (CommunicationCall& call : calls) {
    if (call.data) {
      call.data->uses[on] = ticket;
      expose_to_call(settings_, statement, *call.data, on, work);
      if (work) {
        call.data->read_by = work;
        // With `as` a copy is reduced; the user's own call would have written the data itself.
        call.data->written_by = call.in_place ? work : call.data->written_by;
      }
    }
    if (call.result) {
      call.result->uses[on] = ticket;
      expose_to_call(settings_, statement, *call.result, on, work);
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

}  // namespace lockstep
