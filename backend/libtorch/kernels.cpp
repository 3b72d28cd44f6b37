#include "backend/libtorch/kernels.hpp"

#include <ATen/core/Tensor.h>

#include "backend/libtorch/tensor_kernels.hpp"
#include "backend/libtorch/tensor_values.hpp"

namespace lockstep::backend {

namespace {

/// Operands that are copied out of their buffers and back.
class CopiedOperands final : public TensorOperands {
 public:
  explicit CopiedOperands(Operands& operands) : operands_(operands) {}
  at::Tensor load(const Slice& from) override {
    Values values = operands_.load(from);
    return values.empty() ? at::Tensor() : tensor_of(std::move(values));
  }
  void store(const Slice& to, const at::Tensor& values) override {
    operands_.store(to, values_of(values, to.dtype));
  }

 private:
  Operands& operands_;
};

class LibTorchKernels final : public KernelExecutor {
 public:
  explicit LibTorchKernels(uint64_t dropout_seed) : kernels_(dropout_seed) {}
  void execute(const Op& op, Operands& operands, const Network* network) override {
    CopiedOperands copied(operands);
    kernels_.execute(op, copied, network);
  }

 private:
  TensorKernels kernels_;
};

}  // namespace

std::unique_ptr<KernelExecutor> make_seeded_libtorch_kernels(uint64_t dropout_seed) {
  return std::make_unique<LibTorchKernels>(dropout_seed);
}

std::unique_ptr<KernelExecutor> make_libtorch_kernels() { return make_seeded_libtorch_kernels(0); }

}  // namespace lockstep::backend
