#pragma once

#include <map>
#include <vector>

#include "backend/device/board.hpp"
#include "backend/libtorch/tensor_buffers.hpp"
#include "backend/libtorch/tensor_kernels.hpp"
#include "backend/nccl/cuda_streams.hpp"
#include "backend/nccl/nccl_links.hpp"
#include "model/program/run.hpp"

namespace lockstep::backend {

/// Buffers of GPUs, as kernels find them: temporary results stay until the stream that copies them
/// out has done so.
class CudaBuffers final : public TensorBuffers {
 public:
  void store(const Slice& to, const at::Tensor& values) override;
};

/// The GPUs that one rank drives, by CUDA, LibTorch and NCCL. The first one communicates.
class CudaDevice final : public Device {
 public:
  /// `gpus`: index of the CUDA device by DeviceId. `options` and `board` outlive it.
  CudaDevice(std::vector<int> gpus, const RunOptions& options, uint64_t dropout_seed, Board& board);
  ~CudaDevice() override;

  void start_clock() override { streams_.start_clock(); }
  void allocate(BufferId buffer, const BufferSpec& spec, bool carries_values) override;
  void release(BufferId buffer) override {
    kernels_.released(buffer);
    buffers_.remove(buffer);
  }
  void write(const Slice& to, const Values& values) override;
  Values read(const Slice& from) override;

  Mark mark(StreamNumber stream) override { return streams_.mark(stream); }
  void wait_for(StreamNumber stream, Mark mark) override { streams_.wait_for(stream, mark); }
  bool reached(Mark mark) override { return streams_.reached(mark); }
  Time time_of(Mark mark) override { return streams_.time_of(mark); }
  void forget(Mark mark) override { streams_.forget(mark); }

  bool waits_for_device(const Op& op) const override;
  void compute(const Op& op) override;

  LinkId open_link(const std::string& name, int32_t self, int32_t size) override {
    return links_.open(name, self, size);
  }
  LinkState state_of(LinkId link) override { return links_.state_of(link); }
  std::string trouble_of(LinkId link) override { return links_.trouble_of(link); }
  void communicate(StreamNumber stream, std::span<const LinkedOp> ops) override;
  void complete(StreamNumber stream, std::span<const LinkedOp> ops) override;
  void abort_links() noexcept override { links_.abort_all(); }

 private:
  void copy(const Op& op);
  void note_content(const LinkedOp& linked);
  void* memory_of(StreamNumber on, std::span<const Slice> operands, int64_t bytes);
  at::TensorOptions place_of(DeviceId device) const;
  bool is_on_host(const Slice& operand) const;

  std::vector<int> gpus_;
  const RunOptions& options_;
  CudaStreams streams_;
  CudaBuffers buffers_;
  TensorKernels kernels_;
  NcclLinks links_;
  /// Tensors of operations without buffers, kept while their stream uses them.
  std::map<StreamNumber, std::vector<at::Tensor>> scratch_;
};

}  // namespace lockstep::backend
