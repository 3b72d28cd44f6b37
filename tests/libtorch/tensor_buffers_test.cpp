// Kernels on tensors that are the buffers themselves, as on a GPU, with slices that begin anywhere.
#include <catch2/catch.hpp>

#include "tests/libtorch/elementwise_case.hpp"
#include "tests/libtorch/on_tensors.hpp"

namespace lockstep::libtorch_test::tensor_buffers_test {

namespace {

Execute on_cpu() { return on_tensors(at::TensorOptions(at::kCPU)); }

}  // namespace

TEST_CASE("elementwise kernels write into the middle of a buffer of every type, and no further") {
  check_elementwise(on_cpu);
}

TEST_CASE("an optimizer steps on the parameter's own memory") {
  const auto step = [](const Execute& execute) {
    Memory memory;
    const Slice gradient = memory.add(Values::of(DType::fp32, {1, 2, -4}));
    const Slice parameter = memory.add(Values::of(DType::fp32, {8, 8, 8}));
    const Slice momentum = memory.add(Values(DType::fp32, 3));
    for (double number : {1.0, 2.0}) {
      run_kernel(execute, memory, Kernel::sgd_step, {gradient}, {parameter, momentum},
                 {0.5, 0.5, 0.0, number});
    }
    return std::pair(memory.load(parameter), memory.load(momentum));
  };
  // By hand: momentum 1 g, then 1.5 g; the parameter loses half of both.
  CHECK(step(on_cpu()) ==
        std::pair(Values::of(DType::fp32, {6.75, 5.5, 13}), Values::of(DType::fp32, {1.5, 3, -6})));
  CHECK(step(on_cpu()) == step(libtorch()));
}

TEST_CASE("a layer's forward and backward are those on copies") {
  const NamedArgument four{"", int64_t{4}};
  const Network networks[] = {
      network_of({4}, {layer("Linear", {four, four})}),
      network_of({4}, {layer("ReLU")}),
      network_of({4}, {layer("BatchNorm1d", {four})}),
      network_of({4}, {layer("LayerNorm", {four})}),
      network_of({4}, {layer("Dropout", {{"", 0.5}})}),
      network_of({4}, {layer("Embedding", {four, four})}),
      network_of({3, 4}, {layer("CausalSelfAttention", {four, {"", int64_t{2}}})})};
  for (const Network& network : networks) {
    INFO(name_of(network.layers[0].kind));
    for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16}) {
      // A product of matrices adds up in an order that depends on where its operands lie.
      const Draw draw = network.layers[0].kind == LayerKind::linear ? integers : reals;
      const LayerValues values = values_for(network.layers[0], dtype, 4, draw);
      CHECK(run_layer(on_cpu(), network, 0, values) == run_layer(libtorch(), network, 0, values));
    }
  }
}

TEST_CASE("a backward uses what its parameters are when they changed since the forward") {
  const Network network = network_of({2}, {layer("Linear", {{"", int64_t{2}}, {"", int64_t{2}}})});
  const auto input_gradient = [&](const Execute& execute, bool change) {
    Memory memory;
    const Slice input = memory.add(Values::of(DType::fp32, {1, 1}));
    const Slice weight = memory.add(Values::of(DType::fp32, {1, 2, 3, 4}));
    const Slice bias = memory.add(Values(DType::fp32, 2));
    const Slice output = memory.add(Values(DType::fp32, 2));
    const Slice gradient = memory.add(Values::of(DType::fp32, {1, 1}));
    const Slice to = memory.add(Values(DType::fp32, 2));
    const Slice weight_gradient = memory.add(Values(DType::fp32, 4));
    const Slice bias_gradient = memory.add(Values(DType::fp32, 2));
    run_kernel(execute, memory, Kernel::layer_forward, {input, weight, bias}, {output}, {1, 1},
               &network);
    if (change) {
      run_kernel(execute, memory, Kernel::scale, {}, {weight}, {10});
    }
    run_kernel(execute, memory, Kernel::layer_backward, {gradient, input, weight, bias},
               {to, weight_gradient, bias_gradient}, {1}, &network);
    return memory.load(to);
  };
  CHECK(input_gradient(on_cpu(), false) == Values::of(DType::fp32, {4, 6}));
  CHECK(input_gradient(on_cpu(), true) == Values::of(DType::fp32, {40, 60}));
}

TEST_CASE("a buffer without values has memory, and no kernel reads or writes it") {
  backend::TensorBuffers buffers;
  buffers.add_buffer(BufferId{1}, {DType::fp32, Purpose::workspace, DeviceId{0}, 4},
                     at::TensorOptions(at::kCPU), false);
  const Slice slice{BufferId{1}, DType::fp32, 1, 2};
  CHECK_FALSE(buffers.load(slice).defined());
  CHECK(buffers.memory(slice).numel() == 2);
}

}  // namespace lockstep::libtorch_test::tensor_buffers_test
