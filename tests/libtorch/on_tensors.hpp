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

/// Copies each operand of one kernel into a tensor buffer of its own, runs the kernel on the
/// tensors and copies back what it left. Buffers live on, as do the graphs of them. Where their
/// memory is fixed, the operand lies in the middle, and what stands before and behind it must stay.
class OnTensors {
 public:
  OnTensors(const at::TensorOptions& where, backend::BufferMemory kind)
      : where_(where), margin_(kind == backend::BufferMemory::fixed ? 3 : 0), buffers_(kind) {}

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
  std::vector<Slice> moved(std::span<const Slice> slices) const {
    std::vector<Slice> result(slices.begin(), slices.end());
    for (Slice& slice : result) {
      slice.begin += slice.elements > 0 ? margin_ : 0;
    }
    return result;
  }

  // Only what changed is written, so that a kept graph finds its own memory untouched.
  void bring(const Slice& slice, Operands& operands) {
    const Values values = operands.load(slice);
    const bool is_new = known_.emplace(slice.buffer.value, values).second;
    if (is_new) {
      const BufferSpec spec{slice.dtype, Purpose::workspace, DeviceId{0},
                            slice.elements + 2 * margin_};
      buffers_.add_buffer(slice.buffer, spec, where_, !values.empty());
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
    if (margin_ == 0) {
      return;
    }
    for (const int64_t begin : {int64_t{0}, margin_ + slice.elements}) {
      const at::Tensor edge = buffers_.load({slice.buffer, slice.dtype, begin, margin_});
      CHECK(greatest(backend::values_of(edge.cpu(), slice.dtype)) == 0);
    }
  }

  at::TensorOptions where_;
  int64_t margin_;
  backend::TensorBuffers buffers_;
  backend::TensorKernels kernels_{0};
  std::map<uint32_t, Values> known_;
};

inline Execute on_tensors(const at::TensorOptions& where,
                          backend::BufferMemory kind = backend::BufferMemory::fixed) {
  const auto executor = std::make_shared<OnTensors>(where, kind);
  return [executor](const Op& op, Operands& operands, const Network* network) {
    executor->execute(op, operands, network);
  };
}

}  // namespace lockstep::libtorch_test
