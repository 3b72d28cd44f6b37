// Every kernel on a GPU against the same kernel on the CPU. Needs a GPU: ./dev gpu-check.
#include <catch2/catch.hpp>

#include "backend/libtorch/runtime.hpp"
#include "model/network/optimizer/optimizer_rule.hpp"
#include "tests/libtorch/elementwise_case.hpp"
#include "tests/libtorch/on_tensors.hpp"

namespace lockstep::libtorch_test::kernels_test {

namespace {

Execute on_gpu() {
  backend::keep_convolutions_true_to_type();
  return on_tensors(at::TensorOptions(at::kCUDA));
}

/// Fewer than 256 roundings on the way to any number of these small layers, each of a number no
/// greater than `size`.
void check_close(const Values& found, const Values& exact, double size) {
  REQUIRE(found.size() == exact.size());
  CHECK(distance(found, exact) <= roundings(256, found.dtype()) * size);
}

}  // namespace

TEST_CASE("elementwise kernels of a GPU agree with the reference in every type") {
  check_elementwise(on_gpu);
}

TEST_CASE("optimizers step on a GPU as on the CPU") {
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    const Values gradient = reals(dtype, 64, 1);
    const Values parameter = reals(dtype, 64, 2);
    const std::vector<Values> sgd{parameter, reals(dtype, 64, 3)};
    const std::vector<Values> adam{parameter, reals(dtype, 64, 3), Values(dtype, 64)};
    check_close(written(on_gpu(), Kernel::sgd_step, {gradient}, sgd, {0.1, 0.9, 0.01, 2}),
                written(libtorch(), Kernel::sgd_step, {gradient}, sgd, {0.1, 0.9, 0.01, 2}), 1);
    for (const double decoupled : {0.0, 1.0}) {
      const std::vector<double> scalars{0.1, 0.9, 0.999, 1e-8, 0.01, 1, decoupled};
      check_close(written(on_gpu(), Kernel::adam_step, {gradient}, adam, scalars),
                  written(libtorch(), Kernel::adam_step, {gradient}, adam, scalars), 1);
    }
  }
}

TEST_CASE("all other optimizers step on a GPU as on the CPU") {
  for (const OptimizerRule* const rule : optimizer_rules()) {
    if (rule->kernel() != Kernel::optimizer_step) {
      continue;
    }
    INFO(rule->name());
    OptimizerSettings settings = rule->defaults();
    settings.lr = 0.1;
    settings.weight_decay = 0.01;
    for (const DType dtype : {DType::fp64, DType::fp32}) {
      const Shape shape = {8, 8};
      std::array<double, 2> kept{};
      const UpdateMoment moment{1, rule->advance(settings, 1, kept)};
      std::vector<Values> tensors{reals(dtype, 64, 2)};
      for (const OptimizerState& state : rule->state(settings, shape)) {
        tensors.push_back(integers(dtype, state.elements, 3));
        for (int64_t i = 0; i < state.elements; ++i) {
          tensors.back().set(i, 1);  // of a variance as well as of a mean
        }
      }
      const std::vector<double> scalars = rule->scalars(settings, moment, shape);
      const Values gradient = reals(dtype, 64, 1);
      check_close(written(on_gpu(), Kernel::optimizer_step, {gradient}, tensors, scalars),
                  written(libtorch(), Kernel::optimizer_step, {gradient}, tensors, scalars), 1);
    }
  }
}

TEST_CASE("layers of every kind go forward and backward on a GPU as on the CPU") {
  for (const Network& network : one_layer_of_each_kind()) {
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

}  // namespace lockstep::libtorch_test::kernels_test
