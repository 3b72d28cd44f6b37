#pragma once

#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <map>
#include <vector>

#include "backend/device/device.hpp"

namespace lockstep::backend {

/// The streams of one rank's GPUs, and events in them. `Device` says what the calls do.
class CudaStreams {
 public:
  /// `gpus`: index of the CUDA device by DeviceId.
  explicit CudaStreams(std::vector<int> gpus);
  ~CudaStreams();
  CudaStreams(const CudaStreams&) = delete;
  CudaStreams& operator=(const CudaStreams&) = delete;

  int gpu_of(DeviceId device) const;
  /// Work of the host's own queues is on the first GPU's.
  c10::cuda::CUDAStream stream(StreamNumber id);
  /// For copies between host and device, and for making buffers ready.
  c10::cuda::CUDAStream host_stream(int gpu) const;

  void start_clock();
  Mark mark(StreamNumber stream);
  void wait_for(StreamNumber stream, Mark mark);
  bool reached(Mark mark) const;
  Time time_of(Mark mark) const;
  void forget(Mark mark);

  /// The GPU's buffers are not ready before what its host stream holds by now.
  void host_stream_grew(int gpu);
  /// Orders the stream after that, on all GPUs.
  void order_after_host_streams(StreamNumber stream);

 private:
  struct Event {
    cudaEvent_t event = nullptr;
    size_t gpu = 0;  ///< index into gpus_
  };
  /// One GPU.
  struct Gpu {
    int index = 0;
    c10::cuda::CUDAStream host_stream;
    cudaEvent_t start = nullptr;
    cudaEvent_t host_reached = nullptr;
    bool host_stream_grew = false;
    uint64_t growth = 0;
    std::vector<Mark> free_marks;
  };
  struct Stream {
    c10::cuda::CUDAStream stream;
    size_t gpu = 0;
    std::vector<uint64_t> seen_growth;  ///< by GPU
  };
  size_t position_of(DeviceId device) const;
  Stream& known(StreamNumber id);
  const Event& event(Mark mark) const { return events_.at(mark - 1); }

  std::vector<Gpu> gpus_;
  std::map<StreamNumber, Stream> streams_;
  std::vector<Event> events_;  ///< by mark - 1
};

}  // namespace lockstep::backend
