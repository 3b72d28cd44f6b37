#include <benchmark/benchmark.h>

#include "model/core/values.hpp"

using namespace lockstep;

namespace {

// The reference arithmetic of an all_reduce over eight ranks; items are numbers reduced.
void reduce_eight_ranks(benchmark::State& state, DType dtype) {
  Values part(dtype, state.range(0));
  for (int64_t index = 0; index < part.size(); ++index) {
    part.set(index, 1);
  }
  const std::vector<const Values*> contributions(8, &part);
  for (auto iteration : state) {
    const Values sum = reduce(Reduction::sum, AverageOrder::sum_then_divide, contributions);
    if (sum.number(0) != 8 || sum.number(sum.size() - 1) != 8) {
      state.SkipWithError("eight ones are not 8");
      break;
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * 8);
}

}  // namespace

BENCHMARK_CAPTURE(reduce_eight_ranks, fp32, DType::fp32)->Arg(1 << 12);
BENCHMARK_CAPTURE(reduce_eight_ranks, bf16, DType::bf16)->Arg(1 << 12);
