#include "backend/libtorch/kernels.hpp"

#include "backend/libtorch/tensor_kernels.hpp"
#include "backend/libtorch/tensor_store.hpp"

namespace lockstep::backend {

namespace {

class LibTorchKernels final : public KernelExecutor {
 public:
  void execute(const Op& op, Operands&, const Network* network) override {
    kernels_.execute(op, store_, network);
  }
  ValueStore* store() override { return &store_; }

 private:
  TensorStore store_;
  TensorKernels kernels_{0};
};

}  // namespace

std::unique_ptr<KernelExecutor> make_libtorch_kernels() {
  return std::make_unique<LibTorchKernels>();
}

}  // namespace lockstep::backend
