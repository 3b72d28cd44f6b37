// LibTorch's kernels of the codec MinMaxUInt8 give the reference's bytes and numbers.
#include <catch2/catch.hpp>
#include <limits>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::compression_test {

namespace {

struct Coded {
  Values bytes;
  Values error;
  Values numbers;
};

Coded code(const Execute& execute, const Values& numbers, int64_t chunks, int64_t bytes) {
  Memory memory;
  const Slice from = memory.add(numbers);
  const Slice to = memory.add(Values(DType::uint8, bytes));
  const Slice error = memory.add(Values::of(DType::fp32, {1e-4}));
  const Slice back = memory.add(Values(numbers.dtype(), numbers.size()));
  const std::vector<double> scalars = {static_cast<double>(chunks)};
  run_kernel(execute, memory, Kernel::compress, {from}, {to, error}, scalars);
  run_kernel(execute, memory, Kernel::decompress, {to}, {back}, scalars);
  return {memory.load(to), memory.load(error), memory.load(back)};
}

void check_alike(const Values& numbers, int64_t chunks, int64_t bytes) {
  const Coded expected = code(reference(), numbers, chunks, bytes);
  const Coded found = code(libtorch(), numbers, chunks, bytes);
  CHECK(found.bytes == expected.bytes);
  CHECK(found.error == expected.error);
  CHECK(found.numbers == expected.numbers);
}

}  // namespace

TEST_CASE("LibTorch compresses as the reference does, bit for bit") {
  for (const DType dtype : {DType::fp32, DType::fp16}) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      check_alike(reals(dtype, 120, seed), 1, 32 + 128);
      check_alike(reals(dtype, 120, seed), 4, 4 * (32 + 32));
      check_alike(integers(dtype, 64, seed), 2, 2 * (32 + 32));
    }
    check_alike(Values(dtype, 6), 6, 6 * 64);
    check_alike(Values::of(dtype, {0, 0.5, 1.5, 2.5, 3.5, 255}), 1, 64);
  }
}

TEST_CASE("a scaled sum is rounded once, as in the reference") {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::fp64}) {
    const auto sum = [&](const Execute& execute) {
      Memory memory;
      const Slice to = memory.add(reals(dtype, 33, 1));
      run_kernel(execute, memory, Kernel::add_scaled, {memory.add(reals(dtype, 33, 2))}, {to},
                 {-5.0 / 3});
      return memory.load(to);
    };
    CHECK(sum(libtorch()) == sum(reference()));
  }
}

}  // namespace lockstep::libtorch_test::compression_test
