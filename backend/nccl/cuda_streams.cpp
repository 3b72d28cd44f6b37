#include "backend/nccl/cuda_streams.hpp"

#include <c10/cuda/CUDAGuard.h>

#include <cmath>

#include "backend/nccl/cuda_check.hpp"

namespace lockstep::backend {

namespace {

cudaEvent_t new_event(int gpu) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(gpu));
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreate(&event), "cudaEventCreate");  // with times
  return event;
}

c10::cuda::CUDAStream new_stream(int gpu) {
  return c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(gpu));
}

// LibTorch hands out its streams in turn, so that two of them may be one: parts of a grouped call
// would wait for each other. Kept until the process ends, as LibTorch keeps its own.
c10::cuda::CUDAStream own_stream(int gpu) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(gpu));
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return c10::cuda::getStreamFromExternal(stream, static_cast<c10::DeviceIndex>(gpu));
}

}  // namespace

CudaStreams::CudaStreams(std::vector<int> gpus) {
  for (const int gpu : gpus) {
    gpus_.push_back({gpu, new_stream(gpu), new_event(gpu), new_event(gpu), false, 0, {}});
  }
}

CudaStreams::~CudaStreams() {
  for (const Event& event : events_) {
    cudaEventDestroy(event.event);
  }
  for (const Gpu& gpu : gpus_) {
    cudaEventDestroy(gpu.start);
    cudaEventDestroy(gpu.host_reached);
  }
}

size_t CudaStreams::position_of(DeviceId device) const {
  const size_t position = is_off_device(device) ? 0 : device.value;
  if (position >= gpus_.size()) {
    throw DeviceError("this rank drives no such device");
  }
  return position;
}

int CudaStreams::gpu_of(DeviceId device) const { return gpus_[position_of(device)].index; }

CudaStreams::Stream& CudaStreams::known(StreamNumber id) {
  const auto found = streams_.find(id);
  if (found != streams_.end()) {
    return found->second;
  }
  const bool is_side = id >= side_streams;
  const size_t position = is_side ? 0 : position_of(StreamId{static_cast<uint16_t>(id)}.device());
  Stream fresh{is_side ? own_stream(gpus_[position].index) : new_stream(gpus_[position].index),
               position, std::vector<uint64_t>(gpus_.size(), 0)};
  return streams_.emplace(id, std::move(fresh)).first->second;
}

c10::cuda::CUDAStream CudaStreams::stream(StreamNumber id) { return known(id).stream; }

c10::cuda::CUDAStream CudaStreams::host_stream(int gpu) const {
  for (const Gpu& known : gpus_) {
    if (known.index == gpu) {
      return known.host_stream;
    }
  }
  throw DeviceError("this rank drives no such device");
}

void CudaStreams::start_clock() {
  for (const Gpu& gpu : gpus_) {
    check_cuda(cudaEventRecord(gpu.start, gpu.host_stream.stream()), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(gpu.start), "cudaEventSynchronize");
  }
}

Mark CudaStreams::mark(StreamNumber id) {
  const Stream& on = known(id);
  Gpu& gpu = gpus_[on.gpu];
  Mark mark = 0;
  if (gpu.free_marks.empty()) {
    events_.push_back({new_event(gpu.index), on.gpu});
    mark = events_.size();
  } else {
    mark = gpu.free_marks.back();
    gpu.free_marks.pop_back();
  }
  check_cuda(cudaEventRecord(event(mark).event, on.stream.stream()), "cudaEventRecord");
  return mark;
}

void CudaStreams::wait_for(StreamNumber id, Mark mark) {
  check_cuda(cudaStreamWaitEvent(known(id).stream.stream(), event(mark).event, 0),
             "cudaStreamWaitEvent");
}

bool CudaStreams::reached(Mark mark) const {
  const cudaError_t result = cudaEventQuery(event(mark).event);
  if (result == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check_cuda(result, "cudaEventQuery");
  return true;
}

Time CudaStreams::time_of(Mark mark) const {
  const Event& of = event(mark);
  float elapsed_ms = 0;
  check_cuda(cudaEventElapsedTime(&elapsed_ms, gpus_[of.gpu].start, of.event),
             "cudaEventElapsedTime");
  constexpr double picoseconds_in_ms = 1e9;
  return Time(std::llround(static_cast<double>(elapsed_ms) * picoseconds_in_ms));
}

void CudaStreams::forget(Mark mark) { gpus_[event(mark).gpu].free_marks.push_back(mark); }

void CudaStreams::host_stream_grew(int gpu) {
  for (Gpu& known : gpus_) {
    known.host_stream_grew = known.host_stream_grew || known.index == gpu;
  }
}

void CudaStreams::order_after_host_streams(StreamNumber id) {
  Stream& stream = known(id);
  for (size_t position = 0; position < gpus_.size(); ++position) {
    Gpu& gpu = gpus_[position];
    if (gpu.host_stream_grew) {
      check_cuda(cudaEventRecord(gpu.host_reached, gpu.host_stream.stream()), "cudaEventRecord");
      gpu.host_stream_grew = false;
      ++gpu.growth;
    }
    if (stream.seen_growth[position] < gpu.growth) {
      check_cuda(cudaStreamWaitEvent(stream.stream.stream(), gpu.host_reached, 0),
                 "cudaStreamWaitEvent");
      stream.seen_growth[position] = gpu.growth;
    }
  }
}

}  // namespace lockstep::backend
