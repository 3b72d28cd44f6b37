#include "backend/nccl/cuda_device.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>

#include "backend/libtorch/runtime.hpp"
#include "backend/libtorch/tensor_values.hpp"
#include "backend/nccl/collective_calls.hpp"
#include "backend/nccl/cuda_check.hpp"

namespace lockstep::backend {

void CudaBuffers::store(const Slice& to, const at::Tensor& values) {
  if (values.is_cuda()) {
    c10::cuda::CUDACachingAllocator::recordStream(
        values.storage().data_ptr(), c10::cuda::getCurrentCUDAStream(values.device().index()));
  }
  TensorBuffers::store(to, values);
}

CudaDevice::CudaDevice(std::vector<int> gpus, const RunOptions& options, uint64_t dropout_seed,
                       Board& board)
    : gpus_(std::move(gpus)),
      options_(options),
      streams_(gpus_),
      kernels_(dropout_seed),
      links_(gpus_.front(), board) {
  keep_convolutions_true_to_type();
}

// Nothing may go before the device has done with it.
CudaDevice::~CudaDevice() {
  links_.abort_all();
  for (const int gpu : gpus_) {
    const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(gpu));
    cudaDeviceSynchronize();
  }
}

at::TensorOptions CudaDevice::place_of(DeviceId device) const {
  if (is_off_device(device)) {
    return at::TensorOptions(at::kCPU).pinned_memory(true);
  }
  return at::TensorOptions(at::Device(at::kCUDA, static_cast<int8_t>(streams_.gpu_of(device))));
}

// Memory of a host stream: it is given back only when nothing is in flight that uses it.
void CudaDevice::allocate(BufferId buffer, const BufferSpec& spec, bool carries_values) {
  const int gpu = streams_.gpu_of(spec.device);
  const c10::cuda::CUDAStreamGuard guard(streams_.host_stream(gpu));
  try {
    buffers_.add_buffer(buffer, spec, place_of(spec.device), carries_values);
  } catch (const c10::OutOfMemoryError&) {
    size_t free = 0;
    size_t total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    throw DeviceFull(Bytes(static_cast<int64_t>(free)), Bytes(static_cast<int64_t>(total)));
  } catch (const c10::Error& error) {
    throw DeviceError(error.what_without_backtrace());
  }
  streams_.host_stream_grew(gpu);
}

void CudaDevice::write(const Slice& to, const Values& values) {
  const at::Tensor place = buffers_.memory(to);
  try {
    const c10::cuda::CUDAStreamGuard guard(streams_.host_stream(
        place.is_cuda() ? place.device().index() : streams_.gpu_of(DeviceId{0})));
    place.copy_(tensor_of(values));  // waits for the copy
    buffers_.written_by_others(to);
  } catch (const c10::Error& error) {
    throw DeviceError(error.what_without_backtrace());
  }
}

Values CudaDevice::read(const Slice& from) {
  const at::Tensor place = buffers_.memory(from);
  try {
    const c10::cuda::CUDAStreamGuard guard(streams_.host_stream(
        place.is_cuda() ? place.device().index() : streams_.gpu_of(DeviceId{0})));
    return values_of(place.cpu(), from.dtype);
  } catch (const c10::Error& error) {
    throw DeviceError(error.what_without_backtrace());
  }
}

bool CudaDevice::is_on_host(const Slice& operand) const {
  return operand.buffer != no_buffer && buffers_.is_on_cpu(operand.buffer);
}

bool CudaDevice::waits_for_device(const Op& op) const {
  if (op.kind != OpKind::compute) {
    return false;
  }
  const auto on_host = [this](const Slice& operand) { return is_on_host(operand); };
  return looks_at_values(op, options_.network) || std::ranges::any_of(op.list().reads, on_host) ||
         std::ranges::any_of(op.list().writes, on_host);
}

void CudaDevice::compute(const Op& op) {
  if (op.kind == OpKind::event) {
    return;
  }
  streams_.order_after_host_streams(number_of(op.stream));
  if (op.kind == OpKind::copy) {
    copy(op);
    return;
  }
  const c10::cuda::CUDAStreamGuard guard(streams_.stream(number_of(op.stream)));
  kernels_.execute(op, buffers_, options_.network);
}

// On the stream that the operation names, whichever devices are concerned.
void CudaDevice::copy(const Op& op) {
  const OpLists& lists = op.list();
  if (lists.reads.empty() || lists.writes.empty() || lists.reads.front().buffer == no_buffer ||
      lists.writes.front().buffer == no_buffer) {
    return;
  }
  const at::Tensor from = buffers_.memory(lists.reads.front());
  const at::Tensor to = buffers_.memory(lists.writes.front());
  const cudaStream_t stream = streams_.stream(number_of(op.stream)).stream();
  check_cuda(cudaMemcpyAsync(to.mutable_data_ptr(), from.const_data_ptr(),
                             std::min(from.nbytes(), to.nbytes()), cudaMemcpyDefault, stream),
             "cudaMemcpyAsync");
  buffers_.written_by_others(lists.writes.front());
  buffers_.moved(lists.reads.front(), lists.writes.front());
}

void* CudaDevice::memory_of(StreamNumber on, std::span<const Slice> operands, int64_t bytes) {
  if (!operands.empty() && operands.front().buffer != no_buffer) {
    return buffers_.memory(operands.front()).mutable_data_ptr();
  }
  std::vector<at::Tensor>& scratch = scratch_[on];
  scratch.push_back(
      at::empty({std::max<int64_t>(bytes, 1)}, place_of(DeviceId{0}).dtype(at::kByte)));
  return scratch.back().mutable_data_ptr();
}

void CudaDevice::communicate(StreamNumber on, std::span<const LinkedOp> ops) {
  streams_.order_after_host_streams(on);
  const c10::cuda::CUDAStream stream = streams_.stream(on);
  const c10::cuda::CUDAStreamGuard guard(stream);
  std::vector<CallOperands> operands;
  for (const LinkedOp& linked : ops) {
    const Op& op = *linked.op;
    const OpLists& lists = op.list();
    const auto members = static_cast<int64_t>(linked.members.size());
    CallOperands call;
    call.self = linked.self;
    call.write = memory_of(on, lists.writes, bytes_written(op, members));
    const bool in_place = lists.reads.empty() && !lists.writes.empty();
    call.read = in_place ? call.write : memory_of(on, lists.reads, bytes_read(op, members));
    operands.push_back(call);
  }
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  try {
    for (size_t index = 0; index < ops.size(); ++index) {
      const ncclComm_t communicator = links_.communicator(ops[index].link);
      if (communicator == nullptr) {
        throw LinkBroken("the communicator was aborted");
      }
      add_calls(ops[index], options_.average_order, operands[index], communicator, stream.stream());
    }
  } catch (...) {
    ncclGroupEnd();
    throw;
  }
  check_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

// The own part of an all_gather may be a window of the whole, and is read first.
void CudaDevice::note_content(const LinkedOp& linked) {
  const OpLists& lists = linked.op->list();
  const Slice& to = lists.writes.front();
  if (linked.op->kind == OpKind::all_gather && !lists.reads.empty() && to.buffer != no_buffer) {
    const uint64_t part = buffers_.identity_of(lists.reads.front());
    buffers_.written_by_others(to);
    buffers_.gathered(linked.link, part, to);
  } else {
    buffers_.written_by_others(to);
  }
}

void CudaDevice::complete(StreamNumber on, std::span<const LinkedOp> ops) {
  const c10::cuda::CUDAStreamGuard guard(streams_.stream(on));
  const at::NoGradGuard no_grad;
  for (const LinkedOp& linked : ops) {
    const Op& op = *linked.op;
    if (op.list().writes.empty()) {
      continue;
    }
    const Slice& to = op.list().writes.front();
    note_content(linked);
    const bool is_result =
        op.kind != OpKind::reduce || linked.members[static_cast<size_t>(linked.self)] == op.peer;
    if (is_result && to.buffer != no_buffer && divides_afterwards(op, options_.average_order)) {
      at::Tensor sum = buffers_.memory(to);
      const auto members = static_cast<int64_t>(linked.members.size());
      is_floating(op.dtype) ? sum.div_(members) : sum.div_(members, "trunc");
    }
  }
  scratch_.erase(on);
}

}  // namespace lockstep::backend
