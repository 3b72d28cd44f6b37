#include "backend/libtorch/tensor_memory.hpp"

#include <catch2/catch.hpp>

#include "backend/libtorch/tensor_values.hpp"

using namespace lockstep;
using backend::tensor_of;

TEST_CASE("every tensor is counted from its first byte to its last") {
  backend::TensorMemory& memory = backend::count_tensor_memory();
  const Bytes before = memory.take_peak();
  {
    const at::Tensor first = tensor_of(Values(DType::fp32, 1000)).clone();
    const at::Tensor view = first.narrow(0, 10, 100);  // the same memory
    {
      const at::Tensor second = tensor_of(Values(DType::fp64, 500)).clone();
      const at::Tensor none = second.narrow(0, 0, 0).clone();
    }
    CHECK(memory.take_peak() - before == Bytes(8000));
    CHECK(memory.take_peak() - before == Bytes(4000));  // the second one is gone
  }
  memory.take_peak();
  CHECK(memory.take_peak() == before);
}

TEST_CASE("memory that a kernel uses is counted while it runs, and is aligned as LibTorch's") {
  backend::TensorMemory& memory = backend::count_tensor_memory();
  const at::Tensor left = tensor_of(Values(DType::fp32, 64 * 64)).view({64, 64});
  const Bytes before = memory.take_peak();
  const at::Tensor sum = left.mm(left).add(left);  // the product is a tensor for a moment
  CHECK(memory.take_peak() >= before + Bytes(2 * 64 * 64 * 4));
  CHECK(reinterpret_cast<uintptr_t>(sum.const_data_ptr()) % 64 == 0);
}
