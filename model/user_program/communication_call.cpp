#include "model/user_program/communication_call.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "model/expression/arithmetic.hpp"
#include "model/user_program/named_streams.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

using Kind = StatementKind;

OpKind op_kind(Kind kind) {
  switch (kind) {
    case Kind::all_reduce: return OpKind::all_reduce;
    case Kind::reduce_scatter: return OpKind::reduce_scatter;
    case Kind::all_gather: return OpKind::all_gather;
    case Kind::broadcast: return OpKind::broadcast;
    case Kind::scatter: return OpKind::scatter;
    case Kind::reduce: return OpKind::reduce;
    case Kind::gather: return OpKind::gather;
    case Kind::all_to_all: return OpKind::all_to_all;
    case Kind::send: return OpKind::send;
    default: ensure(kind == Kind::recv, "a communication statement"); return OpKind::recv;
  }
}

Reduction reduction_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return Reduction::sum;
    case ReduceOp::avg: return Reduction::avg;
    case ReduceOp::product: return Reduction::product;
    case ReduceOp::min: return Reduction::min;
    case ReduceOp::max: return Reduction::max;
  }
  return Reduction::sum;
}

bool is_in_place(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::broadcast || kind == OpKind::reduce ||
         kind == OpKind::recv;
}

// A stream that the user names is current while the call makes its result.
uint8_t home_of(StreamId on) {
  return on.queue() >= queue::first_named && on.queue() < queue::first_group ? on.queue()
                                                                             : queue::compute;
}

}  // namespace

CommunicationCalls::CommunicationCalls(const StatementParts& parts, GroupStatements& groups)
    : rank_(parts.context.rank),
      settings_(parts.context.settings),
      log_(parts.context.log),
      tensors_(parts.tensors),
      checks_(parts.checks),
      locations_(parts.locations),
      tape_(parts.tape),
      expressions_(parts.expressions),
      groups_(groups) {}

// All of NCCL's calls are issued on one stream, so that two groups that are entered in
// a different order are reported: their kernels may each hold what the other's need.
StreamId CommunicationCalls::stream_of_call(const Statement& statement, const Op& op) {
  const bool has_queue = settings_.gloo && !statement.stream;
  return has_queue ? gloo_queues_.of(op) : stream_of(settings_, statement, communication_stream);
}

StreamId CommunicationCalls::stream_of_group(GroupId group) {
  return settings_.gloo ? gloo_queues_.of_group(group) : communication_stream;
}

Task<CommunicationCall> CommunicationCalls::with(const Statement& statement, Frame& frame,
                                                 NamedTensor data) {
  const SiteId site = site_of(statement);
  const Group group = groups_.of(statement, frame);
  Call call;
  call.data = data.tensor;
  call.data_is_named = !data.name.empty();
  call.op.kind = op_kind(statement.kind);
  call.op.dtype = data.tensor->slice.dtype;
  call.op.group = group.id;
  call.op.site = site;
  call.op.reduction = reduction_of(value_or(statement.communication.op, ReduceOp::sum));
  call.name = statement.result ? statement.result->value : data.name;
  locations_.check_call(*data.tensor, site);
  if (!group.has(rank_.id())) {
    call.does_nothing = true;
    log_.add({"LS105", site,
              fmt::format("rank {} is not a member of group `{}`: PyTorch warns and does nothing",
                          rank_.id(), statement.group->value),
              "call it on the members only"});
    co_return call;
  }
  check_reduction(statement, call);
  co_await set_peer(statement, frame, group, call);
  call.stream = stream_of_call(statement, call.op);
  co_await set_splits(statement, frame, group, call);
  const bool in_place = is_in_place(call.op.kind) && !statement.result;
  checks_.use(*call.data, data.name, site, in_place);
  const bool gets_all = call.op.kind == OpKind::broadcast || call.op.kind == OpKind::scatter;
  if (call.op.kind != OpKind::recv && !(gets_all && call.op.peer != rank_.id())) {
    checks_.defined(*call.data, data.name, site);
  }
  set_result(statement, group, call);
  call.gradient = gradient_through(statement, group, call, data.gradient);
  co_return call;
}

// The effect of PyTorch's collectives on a graph: those that write their data know nothing of it,
// and of all others only all_gather with sync_grads has a backward.
GradientPointer CommunicationCalls::gradient_through(const Statement& statement, const Group& group,
                                                     const Call& call, GradientPointer data) {
  if (call.in_place && call.op.kind != OpKind::recv) {
    return data;
  }
  const bool flows = statement.kind == StatementKind::all_gather &&
                     value_or(statement.communication.sync_grads, false);
  if (!flows || !data) {
    return nullptr;
  }
  const std::shared_ptr<GradientNode> node =
      tape_.new_node(GradientNode::Kind::gathered, backward_site_of(statement));
  node->group = group;
  node->dtype = call.data->slice.dtype;
  node->elements = call.result->slice.elements;
  tape_.add_input(*node, "", std::move(data));
  return node;
}

// Gloo has no AVG, and ProcessGroupGloo.cpp refuses it before PyTorch 2.8, which sums and divides
// (pull request 149781); reduce_scatter of 2.6 and older did not pass the operation on, and summed.
void CommunicationCalls::check_reduction(const Statement& statement, Call& call) {
  if (!settings_.gloo || !reduces(call.op.kind) || call.op.reduction != Reduction::avg) {
    return;
  }
  if (call.op.kind == OpKind::reduce_scatter && settings_.torch < Version{2, 7, 0}) {
    call.op.reduction = Reduction::sum;
    return;
  }
  if (settings_.torch >= Version{2, 8, 0}) {
    if (!is_floating(call.data->slice.dtype)) {
      throw ProgramException(site_of(statement),
                             "result type Float can't be cast to the desired output type Long: AVG "
                             "with Gloo divides in place; use sum, or floats");
    }
    return;
  }
  throw ProgramException(
      site_of(statement),
      "Cannot use ReduceOp.AVG with Gloo before torch 2.8; use sum and divide by world_size");
}

Program CommunicationCalls::set_peer(const Statement& statement, Frame& frame, const Group& group,
                                     Call& call) {
  const SiteId site = site_of(statement);
  const CommunicationSpec& communication = statement.communication;
  const bool from_source = call.op.kind == OpKind::broadcast || call.op.kind == OpKind::scatter ||
                           call.op.kind == OpKind::recv;
  if (call.op.kind == OpKind::send || call.op.kind == OpKind::recv) {
    if (communication.tag) {
      call.op.tag = static_cast<int32_t>(
          co_await expressions_.integer_of(communication.tag->value, frame, site, "`tag`"));
    }
  } else if (!has_root(call.op.kind)) {
    co_return;
  }
  if (call.op.kind == OpKind::recv && communication.any_source) {
    call.op.peer = any_rank;
    co_return;
  }
  const Given<Expression>& given = from_source ? communication.src : communication.dst;
  const int64_t peer =
      given ? co_await expressions_.integer_of(given->value, frame, site, "a rank") : int64_t{0};
  const bool in_group =
      group.members.empty()
          ? peer >= 0 && peer < rank_.world_size()
          : std::find(group.members.begin(), group.members.end(), peer) != group.members.end();
  if (!in_group) {
    throw ProgramException(site, fmt::format("rank {} is not part of the group", peer));
  }
  call.op.peer = static_cast<int32_t>(peer);
  if (is_point_to_point(call.op.kind) && peer == rank_.id()) {
    throw ProgramException(site,
                           fmt::format("rank {} cannot {} itself", peer,
                                       call.op.kind == OpKind::send ? "send to" : "receive from"));
  }
}

// Sizes are rows of the first dimension; operations count elements. Returns the rows in all.
Task<int64_t> CommunicationCalls::add_splits(const std::vector<Placed<Expression>>& sizes,
                                             Frame& frame, const Group& group, Call& call) {
  const SiteId site = call.op.site;
  if (sizes.size() != group.size(rank_.world_size())) {
    fail_at(log_, site,
            fmt::format("{} split sizes are given, the group has {} ranks", sizes.size(),
                        group.size(rank_.world_size())),
            "give one for each rank of the group");
  }
  int64_t rows = 0;
  for (const Placed<Expression>& size : sizes) {
    const int64_t count = co_await expressions_.integer_of(size.value, frame, site, "a split size");
    if (count < 0) {
      fail_at(log_, site, "a split size is negative", "");
    }
    rows += count;
    call.splits.push_back(count * row_size(call.data->shape));
  }
  co_return rows;
}

Program CommunicationCalls::set_splits(const Statement& statement, Frame& frame, const Group& group,
                                       Call& call) {
  const SiteId site = call.op.site;
  const CommunicationSpec& communication = statement.communication;
  const auto ranks = static_cast<int64_t>(group.size(rank_.world_size()));
  const std::vector<int64_t>& shape = call.data->shape;
  const bool divides = call.op.kind == OpKind::reduce_scatter ||
                       call.op.kind == OpKind::all_to_all || call.op.kind == OpKind::scatter;
  if (!divides) {
    co_return;
  }
  const int64_t rows = shape.empty() ? 1 : shape.front();
  const bool given =
      !communication.input_split_sizes.empty() || !communication.output_split_sizes.empty();
  if (!given || call.op.kind == OpKind::scatter) {
    if (rows % ranks != 0) {
      fail_at(log_, site, fmt::format("{} rows cannot be divided into {} equal parts", rows, ranks),
              "give split sizes, or a different number of elements");
    }
    co_return;
  }
  int64_t sent = rows;
  if (communication.input_split_sizes.empty()) {
    call.splits.assign(static_cast<size_t>(ranks), rows / ranks * row_size(shape));
  } else {
    sent = co_await add_splits(communication.input_split_sizes, frame, group, call);
  }
  if (sent != rows) {
    fail_at(log_, site,
            fmt::format("the input split sizes add up to {}, the data has {} rows", sent, rows),
            "");
  }
  if (call.op.kind == OpKind::all_to_all) {
    if (communication.output_split_sizes.empty()) {
      const std::vector<int64_t> same(static_cast<size_t>(ranks), rows / ranks * row_size(shape));
      call.splits.insert(call.splits.end(), same.begin(), same.end());
    } else {
      co_await add_splits(communication.output_split_sizes, frame, group, call);
    }
  }
}

// Sets the result, what is read and written, and the payload as Op::bytes counts it.
void CommunicationCalls::set_result(const Statement& statement, const Group& group, Call& call) {
  const auto ranks = static_cast<int64_t>(group.size(rank_.world_size()));
  const OpKind kind = call.op.kind;
  const Slice& data = call.data->slice;
  const bool sized = data.buffer == no_buffer;
  const bool is_root = !has_root(kind) || call.op.peer == rank_.id();
  std::vector<int64_t> shape = call.data->shape;
  call.op.bytes = data.bytes();
  call.in_place = is_in_place(kind);
  call.read = kind == OpKind::recv ? Slice{} : data;
  if (is_in_place(kind)) {
    call.result = call.data;
    if (statement.result && !sized && call.data_is_named) {
      call.result = tensors_.make(data.dtype, shape, call.data->device, home_of(call.stream));
      call.needs_copy = kind != OpKind::recv;
    }
    call.read = kind == OpKind::recv ? Slice{} : call.result->slice;
    call.write = call.result->slice;
    return;
  }
  if (kind == OpKind::send) {
    return;
  }
  if (kind == OpKind::all_gather || kind == OpKind::gather) {
    shape.insert(shape.begin(), ranks);
  } else if (kind == OpKind::all_to_all && !call.splits.empty()) {
    const auto received = call.splits.end() - ranks;
    shape.front() = std::accumulate(received, call.splits.end(), int64_t{0}) /
                    std::max<int64_t>(1, row_size(shape));
  } else if (kind == OpKind::reduce_scatter && !call.splits.empty()) {
    const auto own = static_cast<size_t>(group.index_of(rank_.id()));
    shape.front() = call.splits[own] / std::max<int64_t>(1, row_size(shape));
  } else if (kind != OpKind::all_to_all && !shape.empty()) {
    shape.front() /= ranks;
  }
  if (kind == OpKind::gather && !is_root) {
    return;
  }
  call.result = sized ? tensors_.make_sized(data.dtype, shape)
                      : tensors_.make(data.dtype, shape, call.data->device, home_of(call.stream));
  call.write = call.result->slice;
  if (kind == OpKind::scatter) {
    call.op.bytes = call.result->slice.bytes();
    call.read = is_root ? data : Slice{};
  }
}

}  // namespace lockstep
