#include "backend/libtorch/tensor_operands.hpp"

namespace lockstep::backend {

std::vector<at::Tensor> load_all(std::span<const Slice> slices, TensorOperands& operands) {
  std::vector<at::Tensor> all;
  for (const Slice& slice : slices) {
    all.push_back(operands.load(slice));
    if (!all.back().defined()) {
      return {};
    }
  }
  return all;
}

}  // namespace lockstep::backend
