// fill, copy, scale, add, average, cast, and the rules that hold for all kernels.
#include <catch2/catch.hpp>

#include "model/network/arithmetic.hpp"
#include "model/network/layer_kind.hpp"
#include "tests/libtorch/elementwise_case.hpp"

namespace lockstep::libtorch_test {

TEST_CASE("elementwise kernels agree with the reference in every type") {
  check_elementwise([] { return libtorch(); });
}

TEST_CASE("a scaled integer is truncated towards zero, a cast rounds to even") {
  CHECK(written(libtorch(), Kernel::scale, {}, {Values::of(DType::int32, {-3, 3})}, {0.5}) ==
        Values::of(DType::int32, {-1, 1}));
  CHECK(written(libtorch(), Kernel::cast, {Values::of(DType::fp32, {257, 259})},
                {Values(DType::bf16, 2)}) == Values::of(DType::bf16, {256, 260}));
}

TEST_CASE("columns are made orthonormal by the reference arithmetic on the CPU") {
  const Values matrix = Values::of(DType::fp32, {1.5, 2, 0.3, 4, 1, 7, 2, 2, 9, 0.1, 0.2, 5});
  for (const auto& [rows, columns] : {std::pair{12.0, 1.0}, {6.0, 2.0}, {4.0, 3.0}}) {
    const std::vector<double> scalars{rows, columns, 1e-8};
    CHECK(written(libtorch(), Kernel::orthogonalize, {}, {matrix}, scalars) ==
          written(reference(), Kernel::orthogonalize, {}, {matrix}, scalars));
  }
}

TEST_CASE("a kernel one of whose operands carries no values does nothing") {
  const Network network = network_of({2}, {layer("Linear", {{"", int64_t{2}}, {"", int64_t{2}}})});
  Memory memory;
  const Values mark = Values::of(DType::fp32, {7, 7});
  const Slice input = memory.add_without_values(DType::fp32, 2);
  const Slice weight = memory.add(Values(DType::fp32, 4));
  const Slice two = memory.add(mark);
  const Execute execute = libtorch();
  run_kernel(execute, memory, Kernel::layer_forward, {input, weight, two}, {two}, {1, 1}, &network);
  run_kernel(execute, memory, Kernel::layer_backward, {input, two, weight, two}, {two, weight, two},
             {1}, &network);
  run_kernel(execute, memory, Kernel::loss_forward, {input, two}, {two}, {}, &network);
  run_kernel(execute, memory, Kernel::loss_backward, {input, two}, {two}, {1}, &network);
  run_kernel(execute, memory, Kernel::sgd_step, {input}, {two}, {1, 0, 0, 1});
  run_kernel(execute, memory, Kernel::adam_step, {two}, {two, two, input}, {1, 0, 0, 0, 0, 1, 0});
  run_kernel(execute, memory, Kernel::copy, {input}, {two}, {});
  run_kernel(execute, memory, Kernel::add, {input}, {two}, {});
  CHECK(memory.load(two) == mark);
}

TEST_CASE("add goes over all of its pairs") {
  Memory memory;
  const Slice terms[] = {memory.add(Values::of(DType::fp32, {1, 2})),
                         memory.add(Values::of(DType::fp32, {3}))};
  const Slice sums[] = {memory.add(Values::of(DType::fp32, {10, 20})),
                        memory.add(Values::of(DType::fp32, {30}))};
  run_kernel(libtorch(), memory, Kernel::add, {terms[0], terms[1]}, {sums[0], sums[1]}, {});
  CHECK(memory.load(sums[0]) == Values::of(DType::fp32, {11, 22}));
  CHECK(memory.load(sums[1]) == Values::of(DType::fp32, {33}));
}

TEST_CASE("kernels that only have a price do nothing, and need no network") {
  Memory memory;
  const Slice one = memory.add(Values::of(DType::fp32, {7}));
  run_kernel(libtorch(), memory, Kernel::timed, {one}, {one}, {});
  run_kernel(libtorch(), memory, Kernel::roofline, {one}, {one}, {});
  CHECK(memory.load(one).number(0) == 7);
}

TEST_CASE("what LibTorch refuses is an error that names the layer") {
  const Network network =
      network_of({1, 4, 4}, {layer("AvgPool2d", {{"", int64_t{2}}, {"padding", int64_t{2}}})});
  const LayerValues values = values_for(network.layers[0], DType::fp32, 1, reals);
  try {
    run_layer(libtorch(), network, 0, values);
    FAIL("padding beyond half a window was taken");
  } catch (const ArithmeticError& error) {
    CHECK_THAT(error.what(), Catch::StartsWith("layer_forward of `0`: LibTorch refuses it: pad"));
    CHECK_FALSE(error.remedy().empty());
  }
}

}  // namespace lockstep::libtorch_test
