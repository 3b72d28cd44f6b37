#include <cstdio>

#include "model/core/values.hpp"

// 1.5 and 2.5 are exact in bf16, and so is their sum.
int main() {
  using namespace lockstep;
  const Values a = Values::of(DType::bf16, {1.5});
  const Values b = Values::of(DType::bf16, {2.5});
  const Values* both[] = {&a, &b};
  const Values sum = reduce(Reduction::sum, AverageOrder::sum_then_divide, both);
  std::printf("1.5 + 2.5 = %g\n", sum.number(0));
  return sum.number(0) == 4.0 ? 0 : 1;
}
