// LibTorch's optimizers against the reference over five steps.
#include <catch2/catch.hpp>
#include <cmath>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::optimizer_test {

namespace {

constexpr int64_t elements = 33;
constexpr int steps = 5;

/// Magnitudes in [1/2, 1], so that a second moment is no smaller than 1/4 after correction.
Values gradient_of_step(DType dtype, int step) {
  Values values = reals(dtype, elements, 100 + static_cast<uint64_t>(step));
  for (int64_t i = 0; i < elements; ++i) {
    const double value = values.number(i);
    values.set(i, std::copysign(0.5 + std::abs(value) / 2, value));
  }
  return values;
}

/// What is written, parameter first, after five steps; the step's number is put at `step_at`.
std::vector<Values> after_steps(const Execute& execute, Kernel kernel, Values parameter,
                                size_t states, std::vector<double> scalars, size_t step_at,
                                Values (*gradient)(DType, int)) {
  Memory memory;
  const DType dtype = parameter.dtype();
  std::vector<Slice> writes{memory.add(std::move(parameter))};
  for (size_t i = 0; i < states; ++i) {
    writes.push_back(memory.add(Values(dtype, elements)));
  }
  for (int step = 1; step <= steps; ++step) {
    scalars[step_at] = step;
    run_kernel(execute, memory, kernel, {memory.add(gradient(dtype, step))}, writes, scalars);
  }
  std::vector<Values> written;
  for (const Slice& slice : writes) {
    written.push_back(memory.load(slice));
  }
  return written;
}

Values integer_gradient(DType dtype, int step) {
  return integers(dtype, elements, static_cast<uint64_t>(step));
}

}  // namespace

TEST_CASE("integer-valued SGD agrees with the reference bit for bit") {
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    const Values start = integers(dtype, elements, 9);
    for (const double momentum : {0.0, 0.5}) {
      for (const double weight_decay : {0.0, 0.25}) {
        const auto run = [&](const Execute& execute) {
          return after_steps(execute, Kernel::sgd_step, start, momentum != 0 ? 1 : 0,
                             {0.5, momentum, weight_decay, 0}, 3, integer_gradient);
        };
        CHECK(run(libtorch()) == run(reference()));
      }
    }
  }
}

TEST_CASE("real-valued SGD stays within its rounding of the reference") {
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    const auto run = [&](const Execute& execute) {
      return after_steps(execute, Kernel::sgd_step, reals(dtype, elements, 9), 1,
                         {0.1, 0.9, 0.01, 0}, 3, gradient_of_step);
    };
    const std::vector<Values> ours = run(libtorch());
    const std::vector<Values> theirs = run(reference());
    // With |gradient| <= 1.03 the momentum stays below 5.2, so the parameter below 1 + 0.52 * 5.
    // Six roundings per step; errors only add up, since momentum 0.9 and learning rate 0.1 are < 1.
    const double bound = 2 * roundings(6 * steps * steps, dtype);
    CHECK(distance(ours[0], theirs[0]) <= bound * 3.6);
    CHECK(distance(ours[1], theirs[1]) <= bound * 5.2);
  }
}

TEST_CASE("Adam and AdamW stay within their rounding of the reference") {
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    for (const double decoupled : {0.0, 1.0}) {
      const auto run = [&](const Execute& execute) {
        return after_steps(execute, Kernel::adam_step, reals(dtype, elements, 9), 2,
                           {0.01, 0.9, 0.999, 1e-8, 0.01, 0, decoupled}, 5, gradient_of_step);
      };
      const std::vector<Values> ours = run(libtorch());
      const std::vector<Values> theirs = run(reference());
      // Corrected moments are at most 1.05 and see six roundings per step; the root of the second
      // is at least 0.49, so their quotient is at most 2.1 and off by the errors of both and eight
      // roundings of its own. The parameter stays below 1.1.
      const double gamma = roundings(6 * steps, dtype);
      const double direction = gamma * (1.05 / 0.49 + 2.1 / 2) + 2.1 * roundings(8, dtype);
      CHECK(distance(ours[1], theirs[1]) <= 2 * 1.05 * gamma);
      CHECK(distance(ours[2], theirs[2]) <= 2 * 1.05 * gamma);
      CHECK(distance(ours[0], theirs[0]) <=
            2 * steps * (0.01 * direction + 3 * unit_roundoff(dtype) * 1.1));
    }
  }
}

TEST_CASE("Adam's first step goes by the learning rate against the gradient's sign") {
  Memory memory;
  const Slice parameter = memory.add(Values::of(DType::fp64, {1, 1}));
  const Slice first = memory.add(Values(DType::fp64, 2));
  const Slice second = memory.add(Values(DType::fp64, 2));
  run_kernel(libtorch(), memory, Kernel::adam_step, {memory.add(Values::of(DType::fp64, {3, -5}))},
             {parameter, first, second}, {0.25, 0.9, 0.999, 0, 0, 1, 0});
  CHECK(memory.load(parameter).number(0) == Approx(0.75));
  CHECK(memory.load(parameter).number(1) == Approx(1.25));
}

TEST_CASE("Adam without corrections is the same by LibTorch as in the reference") {
  OptimizerSettings settings = rule_of(OptimizerKind::adamw).defaults();
  settings.corrects_bias = false;
  const double step = rule_of(OptimizerKind::adamw).scalars(settings, {1, {}}, {1})[5];
  const auto run = [&](const Execute& execute) {
    Memory memory;
    const Slice parameter = memory.add(Values::of(DType::fp64, {8}));
    const Slice first = memory.add(Values(DType::fp64, 1));
    const Slice second = memory.add(Values(DType::fp64, 1));
    run_kernel(execute, memory, Kernel::adam_step, {memory.add(Values::of(DType::fp64, {4}))},
               {parameter, first, second}, {0.5, 0.5, 0.75, 0, 0.25, step, 1});
    return memory.load(parameter).number(0);
  };
  CHECK(run(reference()) == 6.5);  // 8 - 0.5 (2 / root(4) + 0.25 * 8)
  CHECK(run(libtorch()) == Approx(6.5));
}

TEST_CASE("an optimizer whose parameter is bf16 rounds every stored tensor to bf16") {
  // 1 - 2^-9 is no bf16; it rounds to 1 by ties to even, 1 - 2^-7 is one.
  Memory memory;
  const Slice parameter = memory.add(Values::of(DType::bf16, {1, 1}));
  run_kernel(libtorch(), memory, Kernel::sgd_step,
             {memory.add(Values::of(DType::bf16, {0x1p-9, 0x1p-7}))}, {parameter}, {1, 0, 0, 1});
  CHECK(memory.load(parameter).number(0) == 1);
  CHECK(memory.load(parameter).number(1) == 1 - 0x1p-7);
}

}  // namespace lockstep::libtorch_test::optimizer_test
