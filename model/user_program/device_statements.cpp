#include "model/user_program/device_statements.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/expression/arithmetic.hpp"
#include "model/strategy/data_parallel/device_copy.hpp"
#include "model/user_program/exposure.hpp"
#include "model/user_program/named_streams.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

// A quantity, or a plain number of the kind's unit; 0 alone is any quantity.
std::optional<int64_t> count_of(const Value& value, QuantityKind kind) {
  if (value.is(Value::Kind::quantity) && value.quantity().kind == kind) {
    return value.quantity().count;
  }
  if (value.is(Value::Kind::integer) && value.integer() == 0) {
    return 0;
  }
  return std::nullopt;
}

}  // namespace

DeviceStatements::DeviceStatements(const StatementParts& parts)
    : rank_(parts.context.rank),
      settings_(parts.context.settings),
      log_(parts.context.log),
      tensors_(parts.tensors),
      streams_(parts.streams),
      names_(parts.names),
      checks_(parts.checks),
      locations_(parts.locations),
      expressions_(parts.expressions) {}

TensorPointer DeviceStatements::named_tensor(const Placed<std::string>& name, Frame& frame,
                                             SiteId site) {
  Variable* variable = names_.find(name.value, frame);
  const TensorPointer* tensor =
      variable == nullptr ? nullptr : std::get_if<TensorPointer>(&variable->content);
  if (tensor == nullptr) {
    fail_at(log_, site, fmt::format("`{}` is not a tensor here", name.value),
            "bind it first with `let`");
  }
  return *tensor;
}

namespace {

Task<int64_t> quantity_of(ExpressionValues& expressions, const Given<Expression>& given,
                          Frame& frame, SiteId site, QuantityKind kind) {
  if (!given) {
    co_return 0;
  }
  const Value value = co_await expressions.value_of(given->value, frame, site);
  const std::optional<int64_t> count = count_of(value, kind);
  if (!count || *count < 0) {
    throw ProgramException(site, fmt::format("`{}` is a {}, and a {} of at least 0 is wanted",
                                             given->value.text(), type_of(value), name_of(kind)));
  }
  co_return *count;
}

}  // namespace

Program DeviceStatements::kernel(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const DeviceWork& work = statement.work;
  KernelCall call;
  call.kernel = work.time ? Kernel::timed : Kernel::roofline;
  call.work =
      work.time ? co_await quantity_of(expressions_, work.time, frame, site, QuantityKind::time)
                : co_await quantity_of(expressions_, work.flops, frame, site, QuantityKind::flops);
  call.memory_traffic =
      Bytes(co_await quantity_of(expressions_, work.bytes, frame, site, QuantityKind::bytes));
  const StreamId on = stream_of(settings_, statement, compute_stream);
  std::vector<Ticket> after = streams_.take_waits(on);
  std::vector<TensorPointer> used;
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  const auto use = [&](const Placed<std::string>& name, bool writing) {
    const TensorPointer tensor = named_tensor(name, frame, site);
    if (writing) {
      checks_.use(*tensor, name.value, site, true);
    } else {
      checks_.read(*tensor, name.value, site);
    }
    if (tensor->being_written()) {
      after.push_back(tensor->written_by->ticket);
    }
    if (tensor->slice.buffer != no_buffer) {
      (writing ? writes : reads).push_back(tensor->slice);
    }
    used.push_back(tensor);
  };
  for (const Placed<std::string>& name : work.reads) {
    use(name, false);
  }
  for (const Placed<std::string>& name : work.writes) {
    use(name, true);
  }
  call.reads = reads;
  call.writes = writes;
  const Ticket ticket = rank_.compute(call, {on, After(after), site});
  streams_.submitted(on, ticket);
  for (size_t i = 0; i < used.size(); ++i) {
    used[i]->uses[on] = ticket;
    expose(*used[i], on);
    if (i >= work.reads.size()) {
      used[i]->ready = ticket;
      used[i]->ready_on = on;
      used[i]->left_undefined = false;
    }
  }
}

Program DeviceStatements::host(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const int64_t time =
      co_await quantity_of(expressions_, statement.work.time, frame, site, QuantityKind::time);
  rank_.host(Time(time), site);
}

Program DeviceStatements::copy(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const CopyTarget to = statement.work.to->value;
  const Place& place = rank_.place();
  const bool many = place.devices > 1 && !to.own;
  const DeviceId device = to.cpu ? host_device : DeviceId{static_cast<uint8_t>(many ? to.gpu : 0)};
  const Expression& expression = statement.work.tensor->value;
  Variable source = co_await expressions_.variable_of(expression, frame, site);
  if (const Value* value = std::get_if<Value>(&source.content)) {
    const Value plain = *value;
    source.content = expressions_.tensor_from(plain, locations_.of_result(expression, frame));
  }
  const TensorPointer* given = std::get_if<TensorPointer>(&source.content);
  if (given == nullptr) {
    fail_at(log_, site, fmt::format("`{}` is not a tensor", expression.text()), "");
  }
  const TensorPointer from = *given;
  const bool is_name = expression.root().kind == ExpressionNode::Kind::name;
  const std::string name = is_name ? expression.root().name : "";
  locations_.check_target(to, site, name);
  checks_.read(*from, name, site);
  const StreamId on = stream_of(settings_, statement, compute_stream);
  std::vector<Ticket> after = streams_.take_waits(on);
  if (from->being_written()) {
    after.push_back(from->written_by->ticket);
  }
  const bool sized = from->slice.buffer == no_buffer;
  const TensorPointer made =
      sized ? tensors_.make_sized(from->slice.dtype, from->shape)
            : tensors_.make(from->slice.dtype, from->shape, device, on.queue());
  made->device = device;
  made->other_gpu = to.cpu || to.own || locations_.is_own(to.gpu) ? -1 : to.gpu;
  const CommunicationOptions options{on, After(after), site};
  const bool between = made->other_gpu >= 0;
  const Ticket ticket = between ? copy_between_devices(rank_, from->slice, made->slice, options)
                                : rank_.copy(from->slice, made->slice, options);
  streams_.submitted(on, ticket);
  from->uses[on] = ticket;
  expose(*from, on);
  made->uses[on] = ticket;
  made->ready = ticket;
  made->ready_on = on;
  if (statement.result || is_name) {
    names_.bind(statement.result ? statement.result->value : expression.root().name,
                Variable{made, source.gradient}, frame);
  }
  made->arrives_unwaited = device == host_device && value_or(statement.work.non_blocking, false);
  if (!value_or(statement.work.non_blocking, false)) {
    co_await streams_.settle(ticket, on);
  }
}

void DeviceStatements::wait_stream(const Statement& statement) {
  const StreamId held = stream_of(settings_, statement, compute_stream);
  const StreamId waits = stream_named(settings_, statement.work.on->value);
  const std::vector<Ticket> after = streams_.take_waits(held);
  const Ticket mark = rank_.event({held, After(after), site_of(statement)});
  streams_.submitted(held, mark);
  streams_.let_wait(waits, held, mark);
}

// torch.cuda.synchronize, or that of the stream that the statement names.
Program DeviceStatements::synchronize(const Statement& statement) {
  return statement.stream ? streams_.synchronize(stream_of(settings_, statement, compute_stream),
                                                 site_of(statement))
                          : streams_.synchronize_all();
}

// `.item()` copies on the current stream and waits for it, and so for all that it waits for; of a
// tensor that is on the host it waits for nothing.
Program DeviceStatements::item(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  for (const std::string& name : statement.expression->value.names()) {
    const Variable* variable = names_.find(name, frame);
    const auto* tensor =
        variable == nullptr ? nullptr : std::get_if<TensorPointer>(&variable->content);
    if (tensor != nullptr) {
      checks_.arrival(**tensor, name, site);
    }
  }
  co_await streams_.synchronize(compute_stream, site);
  Value value = co_await expressions_.value_of(statement.expression->value, frame, site);
  if (value.is(Value::Kind::tensor) && value.tensor().values.size() == 1) {
    const Values& one = value.tensor().values;
    value = is_floating(one.dtype()) ? Value(one.number(0)) : Value(one.integer(0));
  }
  if (statement.result) {
    names_.bind(statement.result->value, Variable{std::move(value)}, frame);
  }
}

}  // namespace lockstep
