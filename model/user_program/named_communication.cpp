#include "model/user_program/named_communication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

RequestKind kind_of(StatementKind kind) {
  switch (kind) {
    case StatementKind::all_reduce: return RequestKind::all_reduce;
    case StatementKind::all_gather: return RequestKind::all_gather;
    default: ensure(kind == StatementKind::broadcast, "a collective of Horovod");
  }
  return RequestKind::broadcast;
}

// hvd.allreduce averages where nothing else is asked for.
Reduction reduction_of_call(const Given<ReduceOp>& op) {
  switch (value_or(op, ReduceOp::avg)) {
    case ReduceOp::sum: return Reduction::sum;
    case ReduceOp::avg: return Reduction::avg;
    case ReduceOp::product: return Reduction::product;
    case ReduceOp::min: return Reduction::min;
    case ReduceOp::max: return Reduction::max;
  }
  return Reduction::avg;
}

// horovod/torch/mpi_ops.py looks for a function by the type of the tensor, and has none for these.
void check_reduced_type(DType dtype, SiteId site) {
  const char* const tensor = dtype == DType::uint8  ? "ByteTensor"
                             : dtype == DType::bf16 ? "BFloat16Tensor"
                                                    : nullptr;
  if (tensor != nullptr) {
    throw ProgramException(
        site, fmt::format("AttributeError: Horovod has no horovod_torch_allreduce_async_torch_{}: "
                          "it does not reduce {}",
                          tensor, name_of(dtype)));
  }
}

// Under the names of horovod/torch/mpi_ops_v2.cc.
std::string full_name(RequestKind kind, const std::string& given) {
  return fmt::format("{}.{}", prefix_of(kind), given);
}

}  // namespace

NamedCommunication::NamedCommunication(const StatementParts& parts, CommunicationData& data)
    : rank_(parts.context.rank),
      settings_(parts.context.settings),
      log_(parts.context.log),
      tensors_(parts.tensors),
      streams_(parts.streams),
      names_(parts.names),
      checks_(parts.checks),
      locations_(parts.locations),
      expressions_(parts.expressions),
      started_(parts.started),
      data_(data),
      named_(parts.context.rank) {}

Program NamedCommunication::open() {
  if (settings_.meets_by_name && rank_.world_size() > 1) {
    NegotiationOptions options;
    options.cycle_time = settings_.named_calls.cycle_time;
    options.cache_capacity = settings_.named_calls.cache_capacity;
    options.fusion.threshold = settings_.named_calls.fusion_threshold;
    options.fusion.threshold =
        settings_.ranks_of_nodes.empty()
            ? working_threshold(options.fusion.threshold, rank_.place().local_world_size)
            : options.fusion.threshold;  // controller.cc rounds up where all nodes are alike
    options.fusion.purpose = Purpose::metric;
    options.fusion.average_of_backend = !settings_.gloo;
    options.fusion.waits_for_each = settings_.gloo;
    co_await named_.open(options);
  }
}

Task<std::string> NamedCommunication::name_of_call(const Statement& statement, Frame& frame) {
  std::string name;
  if (!statement.communication.name) {
    co_return name;
  }
  const TextPattern& pattern = statement.communication.name->value;
  for (size_t i = 0; i < pattern.values.size(); ++i) {
    const Value value =
        co_await expressions_.value_of(pattern.values[i], frame, site_of(statement));
    name += pattern.words[i] + text_of(value);
  }
  co_return name + pattern.words.back();
}

Task<TensorRequest> NamedCommunication::request_of(const Statement& statement, Frame& frame,
                                                   const DeviceTensor& data) {
  const SiteId site = site_of(statement);
  TensorRequest request;
  request.name = {kind_of(statement.kind), NameSpace::unnamed, 0};
  request.dtype = data.slice.dtype;
  request.elements = data.slice.elements;
  std::span<const int64_t> shape = data.shape;
  if (request.name.kind == RequestKind::all_gather) {
    if (shape.empty()) {
      throw ProgramException(site,
                             "HorovodInternalError: a rank tried to all_gather a tensor "
                             "without dimensions");
    }
    shape = shape.subspan(1);
  } else if (request.name.kind == RequestKind::all_reduce) {
    check_reduced_type(request.dtype, site);
    request.reduction = reduction_of_call(statement.communication.op);
  } else {
    const Given<Expression>& source = statement.communication.src;
    const int64_t root =
        source ? co_await expressions_.integer_of(source->value, frame, site, "a rank")
               : int64_t{0};
    if (root < 0 || root >= rank_.world_size()) {
      throw ProgramException(site, fmt::format("rank {} is not part of the world", root));
    }
    request.root = static_cast<int32_t>(root);
  }
  request.shape = number_of_shape(shape);
  const std::string name = co_await name_of_call(statement, frame);
  if (!name.empty()) {
    request.name.space = NameSpace::statement;
    request.name.number = number_of_name(name);
    if (named_.is_under_way(request.name)) {
      throw ProgramException(
          site, fmt::format("HorovodInternalError: Duplicate tensor name {}: a tensor of this "
                            "name is still being processed",
                            name));
    }
  }
  co_return request;
}

// In place without `as`, else a copy is reduced or overwritten.
TensorPointer NamedCommunication::target_of(const Statement& statement, const NamedTensor& data,
                                            bool gathers) {
  const bool is_sized = data.tensor->slice.buffer == no_buffer;
  if (gathers || !statement.result || is_sized || data.name.empty()) {
    return data.tensor;
  }
  const SiteId site = site_of(statement);
  TensorPointer copy =
      tensors_.make(data.tensor->slice.dtype, data.tensor->shape, data.tensor->device);
  const std::vector<Ticket> after = streams_.take_waits(compute_stream);
  copy->ready = rank_.copy(data.tensor->slice, copy->slice, {compute_stream, After(after), site});
  copy->ready_on = compute_stream;
  copy->uses[compute_stream] = copy->ready;
  data.tensor->uses[compute_stream] = copy->ready;
  streams_.submitted(compute_stream, copy->ready);
  return copy;
}

void NamedCommunication::note_handed_over(const TensorName& name, const std::string& given,
                                          int64_t handle, SiteId site) {
  const bool moves_data = name.kind != RequestKind::join && name.kind != RequestKind::barrier;
  const std::string own = !moves_data ? std::string(prefix_of(name.kind))
                          : given.empty()
                              ? full_name(name.kind, fmt::format("noname.{}", handle + 1))
                              : full_name(name.kind, given);
  HandedOver& noted = log_.handed_over[own];
  ++noted.times;
  noted.site = site;
}

// The background thread waits for it on the device.
Ticket NamedCommunication::handed_over(const Statement& statement) {
  const std::vector<Ticket> after = streams_.take_waits(compute_stream);
  const Ticket ready = rank_.event({compute_stream, After(after), site_of(statement)});
  streams_.submitted(compute_stream, ready);
  return ready;
}

Program NamedCommunication::communicate(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const NamedTensor data = co_await data_.of(statement, frame);
  locations_.check_call(*data.tensor, site);
  const TensorRequest request = co_await request_of(statement, frame, *data.tensor);
  const bool gathers = request.name.kind == RequestKind::all_gather;
  checks_.use(*data.tensor, data.name, site, !gathers && !statement.result);
  if (request.name.kind != RequestKind::broadcast || request.root == rank_.id()) {
    checks_.defined(*data.tensor, data.name, site);
  }
  const TensorPointer target = target_of(statement, data, gathers);
  const std::string name = statement.result ? statement.result->value : data.name;
  const bool asynchronous = value_or(statement.asynchronous, false);
  if (rank_.world_size() == 1) {
    names_.bind(name, Variable{target}, frame);
    co_return;
  }
  const Ticket ready = handed_over(statement);
  target->ready = ready;  // so that what the host wrote counts no longer
  target->ready_on = compute_stream;
  target->uses[compute_stream] = ready;
  const std::string given = co_await name_of_call(statement, frame);
  NamedCollectives::InFlight sent{target, gathers ? nullptr : target,
                                  full_name(request.name.kind, given)};
  const int64_t handle = named_.submit(request, std::move(sent), ready);
  note_handed_over(request.name, given, handle, site);
  if (!asynchronous) {
    const TensorPointer result = co_await finish(handle, site);
    if (!name.empty()) {
      names_.bind(name, Variable{result}, frame);
    }
    co_return;
  }
  const std::shared_ptr<PendingWork> work = started_.start(statement, ready, compute_stream);
  work->handle = handle;
  target->read_by = work;
  if (!gathers) {
    target->written_by = work;
  }
  if (!name.empty() && (statement.result || !gathers)) {
    names_.bind(name, gathers ? Variable{work} : Variable{target}, frame);
  }
}

Task<TensorPointer> NamedCommunication::finish(int64_t handle, SiteId site) {
  const NamedCollectives::Arrived arrived = co_await named_.wait(handle, site);
  if (arrived.sent.result) {
    co_return arrived.sent.result;
  }
  const DeviceTensor& part = *arrived.sent.data;
  std::vector<int64_t> shape = part.shape;
  shape.front() = arrived.whole.elements / std::max<int64_t>(row_size(shape), 1);
  co_return tensors_.adopt(arrived.whole, std::move(shape));
}

Program NamedCommunication::meet(const Statement& statement, RequestKind kind) {
  if (rank_.world_size() == 1) {
    co_return;
  }
  const SiteId site = site_of(statement);
  TensorRequest request;
  request.name = {kind, NameSpace::statement, 0};
  const Ticket ready = handed_over(statement);
  const int64_t handle = named_.submit(request, {}, ready);
  note_handed_over(request.name, "", handle, site);
  co_await named_.wait(handle, site);
}

}  // namespace lockstep
