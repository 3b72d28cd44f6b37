#pragma once

#include <catch2/catch.hpp>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test {

inline constexpr DType all_dtypes[] = {DType::fp64,  DType::fp32,  DType::bf16, DType::fp16,
                                       DType::int64, DType::int32, DType::uint8};

/// What the kernel leaves in the first of its buffers, which hold `into` before.
inline Values written(const Execute& execute, Kernel kernel, const std::vector<Values>& reads,
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

/// Every elementwise kernel in every type leaves what the reference leaves, bit for bit. Each
/// kernel has a fresh executor: it may remember buffers by number.
inline void check_elementwise(const std::function<Execute()>& fresh) {
  for (const DType dtype : all_dtypes) {
    INFO(name_of(dtype));
    const Values counting = Values::of(dtype, {1, 2, 3, 4, 5, 6});
    const auto agree = [&](Kernel kernel, const std::vector<Values>& reads, const Values& into,
                           const std::vector<double>& scalars = {}) {
      INFO(name_of(kernel));
      CHECK(written(fresh(), kernel, reads, {into}, scalars) ==
            written(reference(), kernel, reads, {into}, scalars));
    };
    agree(Kernel::fill, {}, counting, {3});
    agree(Kernel::copy, {counting}, Values(dtype, 6));
    agree(Kernel::scale, {counting}, Values(dtype, 6), {0.5});
    agree(Kernel::scale, {}, counting, {1.5});
    agree(Kernel::add, {counting}, counting);
    agree(Kernel::add, {Values::of(dtype, {1, 2})}, counting);
    agree(Kernel::average, {Values::of(dtype, {1, 2, 6, 3})}, Values(dtype, 1));
    agree(Kernel::squared_norm, {counting, counting}, Values(DType::fp32, 1));
    if (is_floating(dtype)) {
      agree(Kernel::clip_by_value, {}, Values::of(dtype, {-3, 3, 0.5, -2}), {2});
      for (const double last : {2.0, std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()}) {
        const Values scaled = Values::of(dtype, {-3, 3, 0.5, last});
        const std::vector<Values> both{Values::of(DType::fp32, {0}), scaled};
        const Values flag = written(reference(), Kernel::unscale, {}, both, {0.25});
        CHECK(flag.number(0) == (last == 2 ? 0 : 1));
        CHECK(written(fresh(), Kernel::unscale, {}, both, {0.25}) == flag);
      }
      const DType norm = dtype == DType::fp64 ? DType::fp64 : DType::fp32;
      for (const double limit : {1.0, 7.0, 100.0}) {
        agree(Kernel::clip_by_norm, {Values::of(norm, {91})}, counting, {limit});
      }
    }
    if (is_floating(dtype)) {  // whole numbers, whose products and norms are exact
      agree(Kernel::adasum, {counting, Values::of(dtype, {2, 0, -1, 3, 1, 1})}, Values(dtype, 6));
      agree(Kernel::adasum, {counting, Values(dtype, 6)}, Values(dtype, 6));
    }
    if (is_floating(dtype)) {  // whole numbers, so that no order of additions rounds
      agree(Kernel::matrix_product, {counting, counting}, Values(dtype, 4), {2, 3, 2, 0, 0});
      agree(Kernel::matrix_product, {counting, counting}, Values(dtype, 4), {2, 3, 2, 0, 1});
      agree(Kernel::matrix_product, {counting, counting}, Values(dtype, 9), {3, 2, 3, 1, 0});
    }
    for (const DType to : all_dtypes) {
      agree(Kernel::cast, {counting}, Values(to, 6));
    }
  }
}

}  // namespace lockstep::libtorch_test
