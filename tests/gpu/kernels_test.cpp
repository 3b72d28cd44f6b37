// Every kernel on a GPU against the same kernel on the CPU. Needs a GPU: ./dev gpu-check.
#include <catch2/catch.hpp>

#include "backend/libtorch/runtime.hpp"
#include "tests/libtorch/on_tensors.hpp"

namespace lockstep::libtorch_test {

namespace {

constexpr DType all_dtypes[] = {DType::fp64,  DType::fp32,  DType::bf16, DType::fp16,
                                DType::int64, DType::int32, DType::uint8};

Execute on_gpu() {
  backend::keep_convolutions_true_to_type();
  return on_tensors(at::TensorOptions(at::kCUDA));
}

Values after(const Execute& execute, Kernel kernel, const std::vector<Values>& reads,
             const std::vector<Values>& into, const std::vector<double>& scalars = {}) {
  Memory memory;
  std::vector<Slice> from;
  std::vector<Slice> to;
  for (const Values& values : reads) {
    from.push_back(memory.add(values));
  }
  for (const Values& values : into) {
    to.push_back(memory.add(values));
  }
  run_kernel(execute, memory, kernel, from, to, scalars);
  return memory.load(to.front());
}

/// Fewer than 256 roundings on the way to any number of these small layers, each of a number no
/// greater than `size`.
void check_close(const Values& found, const Values& exact, double size) {
  REQUIRE(found.size() == exact.size());
  CHECK(distance(found, exact) <= roundings(256, found.dtype()) * size);
}

}  // namespace

TEST_CASE("elementwise kernels of a GPU agree with the reference in every type") {
  for (const DType dtype : all_dtypes) {
    INFO(name_of(dtype));
    const Values counting = Values::of(dtype, {1, 2, 3, 4, 5, 6});
    const auto agree = [&](Kernel kernel, const std::vector<Values>& reads, const Values& into,
                           const std::vector<double>& scalars = {}) {
      INFO(name_of(kernel));
      CHECK(after(on_gpu(), kernel, reads, {into}, scalars) ==
            after(reference(), kernel, reads, {into}, scalars));
    };
    agree(Kernel::fill, {}, counting, {3});
    agree(Kernel::copy, {counting}, Values(dtype, 6));
    agree(Kernel::scale, {counting}, Values(dtype, 6), {0.5});
    agree(Kernel::scale, {}, counting, {1.5});
    agree(Kernel::add, {counting}, counting);
    agree(Kernel::average, {Values::of(dtype, {1, 2, 6, 3})}, Values(dtype, 1));
    for (const DType to : all_dtypes) {
      agree(Kernel::cast, {counting}, Values(to, 6));
    }
  }
}

TEST_CASE("optimizers step on a GPU as on the CPU") {
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    const Values gradient = reals(dtype, 64, 1);
    const Values parameter = reals(dtype, 64, 2);
    const std::vector<Values> sgd{parameter, reals(dtype, 64, 3)};
    const std::vector<Values> adam{parameter, reals(dtype, 64, 3), Values(dtype, 64)};
    check_close(after(on_gpu(), Kernel::sgd_step, {gradient}, sgd, {0.1, 0.9, 0.01, 2}),
                after(libtorch(), Kernel::sgd_step, {gradient}, sgd, {0.1, 0.9, 0.01, 2}), 1);
    for (const double decoupled : {0.0, 1.0}) {
      const std::vector<double> scalars{0.1, 0.9, 0.999, 1e-8, 0.01, 1, decoupled};
      check_close(after(on_gpu(), Kernel::adam_step, {gradient}, adam, scalars),
                  after(libtorch(), Kernel::adam_step, {gradient}, adam, scalars), 1);
    }
  }
}

TEST_CASE("layers of every kind go forward and backward on a GPU as on the CPU") {
  const NamedArgument two{"", int64_t{2}};
  const NamedArgument four{"", int64_t{4}};
  std::vector<Network> networks;
  const auto add = [&networks](Shape input, LayerDescription description) {
    networks.push_back(network_of(std::move(input), {std::move(description)}));
  };
  add({4}, layer("Linear", {four, two}));
  add({4}, layer("Bias", {four}));
  add({4}, layer("ReLU"));
  add({4}, layer("GELU"));
  add({4}, layer("Embedding", {four, two}));
  add({2, 4}, layer("PositionalEmbedding", {two, four}));
  add({4}, layer("BatchNorm1d", {four}));
  add({2, 2, 2}, layer("BatchNorm2d", {two}));
  add({4}, layer("LayerNorm", {four}));
  add({2, 4, 4}, layer("Conv2d", {two, two, two}));
  add({2, 4, 4}, layer("MaxPool2d", {two}));
  add({2, 4, 4}, layer("AvgPool2d", {two}));
  add({2, 4, 4}, layer("AdaptiveAvgPool2d", {two}));
  add({2, 4}, layer("Flatten"));
  add({4}, layer("Dropout", {{"", 0.5}}));
  add({3, 4}, layer("MultiheadAttention", {four, two}));
  add({3, 4}, layer("CausalSelfAttention", {four, two}));
  for (const Network& network : networks) {
    INFO(name_of(network.layers[0].kind));
    for (const DType dtype : {DType::fp64, DType::fp32}) {
      const LayerValues values = values_for(network.layers[0], dtype, 4, reals);
      const LayerResult found = run_layer(on_gpu(), network, 0, values);
      const LayerResult exact = run_layer(libtorch(), network, 0, values);
      check_close(found.output, exact.output, 8);
      check_close(found.input_gradient, exact.input_gradient, 8);
      REQUIRE(found.gradients.size() == exact.gradients.size());
      for (size_t i = 0; i < found.gradients.size(); ++i) {
        check_close(found.gradients[i], exact.gradients[i], 16);
      }
      for (size_t i = 0; i < found.buffers.size(); ++i) {
        check_close(found.buffers[i], exact.buffers[i], 8);
      }
    }
  }
}

}  // namespace lockstep::libtorch_test
