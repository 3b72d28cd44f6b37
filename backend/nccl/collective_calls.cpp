#include "backend/nccl/collective_calls.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "backend/nccl/nccl_links.hpp"
#include "model/core/ensure.hpp"

namespace lockstep::backend {

namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::fp64: return ncclFloat64;
    case DType::fp32: return ncclFloat32;
    case DType::bf16: return ncclBfloat16;
    case DType::fp16: return ncclFloat16;
    case DType::int64: return ncclInt64;
    case DType::int32: return ncclInt32;
    case DType::uint8: return ncclUint8;
  }
  return ncclUint8;
}

// The average of one member is its sum; NCCL before 2.29.7 leaves elements of it unwritten (its
// issue 1950).
ncclRedOp_t reduction_of(const Op& op, AverageOrder order, size_t members) {
  switch (op.reduction) {
    case Reduction::sum: return ncclSum;
    case Reduction::avg: return divides_afterwards(op, order) || members == 1 ? ncclSum : ncclAvg;
    case Reduction::product: return ncclProd;
    case Reduction::min: return ncclMin;
    case Reduction::max: return ncclMax;
  }
  return ncclSum;
}

/// The calls of one operation, which all go to one communicator.
class Calls {
 public:
  Calls(const LinkedOp& linked, AverageOrder order, const CallOperands& operands,
        ncclComm_t communicator, cudaStream_t stream)
      : op_(*linked.op),
        members_(linked.members),
        operands_(operands),
        type_(type_of(op_.dtype)),
        reduction_(reduction_of(op_, order, linked.members.size())),
        elements_(static_cast<size_t>(op_.elements())),
        communicator_(communicator),
        stream_(stream) {}

  void add() const {
    switch (op_.kind) {
      case OpKind::all_reduce:
        check_nccl(ncclAllReduce(operands_.read, operands_.write, elements_, type_, reduction_,
                                 communicator_, stream_),
                   "ncclAllReduce");
        return;
      case OpKind::all_gather:
        check_nccl(ncclAllGather(operands_.read, operands_.write, elements_, type_, communicator_,
                                 stream_),
                   "ncclAllGather");
        return;
      case OpKind::broadcast:
        check_nccl(ncclBroadcast(operands_.write, operands_.write, elements_, type_, root(),
                                 communicator_, stream_),
                   "ncclBroadcast");
        return;
      case OpKind::reduce:
        check_nccl(ncclReduce(operands_.read, operands_.write, elements_, type_, reduction_, root(),
                              communicator_, stream_),
                   "ncclReduce");
        return;
      case OpKind::barrier:  // NCCL has none: one byte goes round
        check_nccl(ncclAllReduce(operands_.write, operands_.write, 1, ncclUint8, ncclMax,
                                 communicator_, stream_),
                   "ncclAllReduce");
        return;
      case OpKind::reduce_scatter: reduce_scatter(); return;
      case OpKind::gather: gather(); return;
      case OpKind::scatter: scatter(); return;
      case OpKind::all_to_all: all_to_all(); return;
      case OpKind::send: send(0, elements_, members_.size() > 1 ? 1 : 0); return;
      case OpKind::recv: receive(0, elements_, 0); return;
      default: ensure(false, "a communication of NCCL");
    }
  }

 private:
  int root() const {
    return static_cast<int>(std::ranges::find(members_, op_.peer) - members_.begin());
  }
  int size() const { return static_cast<int>(members_.size()); }

  void send(int64_t from, size_t elements, int to) const {
    const auto* begin = static_cast<const std::byte*>(operands_.read) + from * size_of(op_.dtype);
    check_nccl(ncclSend(begin, elements, type_, to, communicator_, stream_), "ncclSend");
  }
  void receive(int64_t to, size_t elements, int from) const {
    auto* begin = static_cast<std::byte*>(operands_.write) + to * size_of(op_.dtype);
    check_nccl(ncclRecv(begin, elements, type_, from, communicator_, stream_), "ncclRecv");
  }

  // Parts of different sizes go to their member by a reduce each.
  void reduce_scatter() const {
    const auto splits = op_.list().splits;
    if (splits.empty()) {
      check_nccl(ncclReduceScatter(operands_.read, operands_.write, elements_ / members_.size(),
                                   type_, reduction_, communicator_, stream_),
                 "ncclReduceScatter");
      return;
    }
    const auto* begin = static_cast<const std::byte*>(operands_.read);
    for (int member = 0; member < size(); ++member) {
      const int64_t elements = splits[static_cast<size_t>(member)];
      check_nccl(ncclReduce(begin, operands_.write, static_cast<size_t>(elements), type_,
                            reduction_, member, communicator_, stream_),
                 "ncclReduce");
      begin += elements * size_of(op_.dtype);
    }
  }

  void gather() const {
    send(0, elements_, root());
    for (int member = 0; operands_.self == root() && member < size(); ++member) {
      receive(member * op_.elements(), elements_, member);
    }
  }

  void scatter() const {
    for (int member = 0; operands_.self == root() && member < size(); ++member) {
      send(member * op_.elements(), elements_, member);
    }
    receive(0, elements_, root());
  }

  void all_to_all() const {
    std::vector<int64_t> parts(op_.list().splits.begin(), op_.list().splits.end());
    if (parts.empty()) {
      parts.assign(2 * members_.size(), op_.elements() / size());
    }
    ensure(parts.size() == 2 * members_.size(), "a collective has one split for each member");
    int64_t sent = 0;
    int64_t got = 0;
    for (int member = 0; member < size(); ++member) {
      const int64_t to = parts[static_cast<size_t>(member)];
      const int64_t from = parts[static_cast<size_t>(size() + member)];
      send(sent, static_cast<size_t>(to), member);
      receive(got, static_cast<size_t>(from), member);
      sent += to;
      got += from;
    }
  }

  const Op& op_;
  std::span<const int32_t> members_;
  const CallOperands& operands_;
  ncclDataType_t type_;
  ncclRedOp_t reduction_;
  size_t elements_;
  ncclComm_t communicator_;
  cudaStream_t stream_;
};

int64_t elements_got(const Op& op, int64_t members) {
  const auto splits = op.list().splits;
  if (splits.empty()) {
    return op.elements();
  }
  const auto got = splits.subspan(static_cast<size_t>(members));
  return std::accumulate(got.begin(), got.end(), int64_t{0});
}

}  // namespace

bool divides_afterwards(const Op& op, AverageOrder order) {
  return reduces(op.kind) && op.reduction == Reduction::avg &&
         (!is_floating(op.dtype) || order == AverageOrder::sum_then_divide);
}

int64_t bytes_read(const Op& op, int64_t members) {
  switch (op.kind) {
    case OpKind::scatter: return op.bytes.count() * members;
    case OpKind::barrier:
    case OpKind::recv: return 0;
    default: return op.bytes.count();
  }
}

int64_t bytes_written(const Op& op, int64_t members) {
  switch (op.kind) {
    case OpKind::all_gather:
    case OpKind::gather: return op.bytes.count() * members;
    case OpKind::all_to_all: return elements_got(op, members) * size_of(op.dtype);
    case OpKind::barrier: return 1;
    case OpKind::send: return 0;
    default: return op.bytes.count();
  }
}

void add_calls(const LinkedOp& linked, AverageOrder order, const CallOperands& operands,
               ncclComm_t communicator, cudaStream_t stream) {
  Calls(linked, order, operands, communicator, stream).add();
}

}  // namespace lockstep::backend
