#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <vector>

#include "backend/libtorch/tensor_buffers.hpp"
#include "backend/libtorch/tensor_kernels.hpp"
#include "backend/libtorch/tensor_values.hpp"
#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test {

/// What stands before and behind every slice, and must stay.
inline constexpr int64_t margin = 3;

/// Copies each operand of one kernel into the middle of a tensor buffer of its own, runs the kernel
/// on the tensors and copies back what it left. Buffers live on, as do the graphs of them.
class OnTensors {
 public:
  explicit OnTensors(const at::TensorOptions& where) : where_(where) {}

  void execute(const Op& op, Operands& operands, const Network* network) {
    const OpLists& lists = op.list();
    for (const Slice& read : lists.reads) {
      bring(read, operands);
    }
    for (const Slice& write : lists.writes) {
      bring(write, operands);
    }
    std::vector<Slice> reads = moved(lists.reads);
    std::vector<Slice> writes = moved(lists.writes);
    const OpLists there{{}, reads, writes, lists.splits, lists.scalars};
    Op shifted = op;
    shifted.lists = &there;
    kernels_.execute(shifted, buffers_, network);
    for (const Slice& write : lists.writes) {
      if (const at::Tensor left = buffers_.load(moved({&write, 1}).front()); left.defined()) {
        operands.store(write, backend::values_of(left.cpu(), write.dtype));
        check_margins(write);
      }
    }
  }

 private:
  static std::vector<Slice> moved(std::span<const Slice> slices) {
    std::vector<Slice> result(slices.begin(), slices.end());
    for (Slice& slice : result) {
      slice.begin += slice.elements > 0 ? margin : 0;
    }
    return result;
  }

  // Only what changed is written, so that a kept graph finds its own memory untouched.
  void bring(const Slice& slice, Operands& operands) {
    const Values values = operands.load(slice);
    const bool is_new = known_.emplace(slice.buffer.value, values).second;
    if (is_new) {
      const BufferSpec spec{slice.dtype, Purpose::workspace, DeviceId{0},
                            slice.elements + 2 * margin};
      buffers_.add(slice.buffer, spec, where_, !values.empty());
    }
    if (values.empty()) {
      return;
    }
    const Slice there = moved({&slice, 1}).front();
    if (is_new || backend::values_of(buffers_.load(there).cpu(), slice.dtype) != values) {
      buffers_.store(there, backend::tensor_of(values));
    }
  }

  void check_margins(const Slice& slice) {
    for (const int64_t begin : {int64_t{0}, margin + slice.elements}) {
      const at::Tensor edge = buffers_.load({slice.buffer, slice.dtype, begin, margin});
      CHECK(greatest(backend::values_of(edge.cpu(), slice.dtype)) == 0);
    }
  }

  at::TensorOptions where_;
  backend::TensorBuffers buffers_;
  backend::TensorKernels kernels_{0};
  std::map<uint32_t, Values> known_;
};

inline Execute on_tensors(const at::TensorOptions& where) {
  const auto executor = std::make_shared<OnTensors>(where);
  return [executor](const Op& op, Operands& operands, const Network* network) {
    executor->execute(op, operands, network);
  };
}

}  // namespace lockstep::libtorch_test
