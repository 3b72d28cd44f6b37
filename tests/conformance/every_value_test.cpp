// Every kind of operation with every type and reduction leaves the values of its definition, in
// both worlds, on one to four ranks.
#include <array>
#include <cmath>
#include <numeric>

#include "tests/conformance/agreement.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace every_value_test {

namespace {

constexpr std::array dtypes{DType::fp64,  DType::fp32,  DType::bf16, DType::fp16,
                            DType::int64, DType::int32, DType::uint8};
constexpr std::array reductions{Reduction::sum, Reduction::avg, Reduction::product, Reduction::min,
                                Reduction::max};

// Small whole numbers: exact in every type, also as a product over four ranks (at most 120).
double contribution(int64_t rank, int64_t element) {
  return static_cast<double>(rank + 1 + element % 2);
}

// The mean of integers is the floor, that of floats needs a sum that all world sizes divide.
double contribution(int64_t rank, int64_t element, DType dtype, Reduction reduction) {
  const bool divisible = reduction == Reduction::avg && is_floating(dtype);
  return contribution(rank, element) * (divisible ? 12 : 1);
}

double reduced(int64_t world, int64_t element, DType dtype, Reduction reduction) {
  double sum = 0;
  double product = 1;
  for (int64_t rank = 0; rank < world; ++rank) {
    const double value = contribution(rank, element, dtype, reduction);
    sum += value;
    product *= value;
  }
  switch (reduction) {
    case Reduction::sum: return sum;
    case Reduction::avg: return std::floor(sum / static_cast<double>(world));
    case Reduction::product: return product;
    case Reduction::min: return contribution(0, element);
    case Reduction::max: return contribution(world - 1, element);
  }
  return 0;
}

Slice filled(Rank& rank, DType dtype, int64_t elements, Reduction reduction = Reduction::sum) {
  const Slice slice = rank.allocate(Purpose::metric, dtype, elements);
  Values values(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, contribution(rank.id(), i, dtype, reduction));
  }
  rank.write(slice, values);
  return slice;
}

Slice empty(Rank& rank, DType dtype, int64_t elements) {
  return rank.allocate(Purpose::metric, dtype, elements);
}

Program show(Rank& rank, Seen& seen, Ticket done, Slice slice) {
  co_await rank.settle(done);
  seen.push_back(rank.read(slice));
}

std::vector<int64_t> uneven_splits(int64_t world) {
  std::vector<int64_t> splits(static_cast<size_t>(world));
  std::iota(splits.begin(), splits.end(), 1);  // 1, 2, .. elements
  return splits;
}

Program reduce_all_ways(Rank& rank, Seen& seen, DType dtype, Reduction reduction) {
  const int64_t world = rank.world_size();
  const Slice all = filled(rank, dtype, 3, reduction);
  co_await show(rank, seen, rank.all_reduce(world_group, all, reduction), all);
  const Slice root = filled(rank, dtype, 3, reduction);
  const auto last = static_cast<int32_t>(world - 1);
  co_await show(rank, seen, rank.reduce(world_group, root, reduction, last), root);
  const Slice whole = filled(rank, dtype, 2 * world, reduction);
  const Slice part = empty(rank, dtype, 2);
  co_await show(rank, seen, rank.reduce_scatter(world_group, whole, part, reduction), part);
  const std::vector<int64_t> splits = uneven_splits(world);
  const Slice uneven = filled(rank, dtype, world * (world + 1) / 2, reduction);
  const Slice own = empty(rank, dtype, rank.id() + 1);
  const Ticket scattered = rank.reduce_scatter(world_group, uneven, own, reduction, splits);
  co_await show(rank, seen, scattered, own);
}

void expect_reductions(int64_t world, int64_t rank, DType dtype, Reduction reduction,
                       Numbers& expected) {
  for (int64_t i = 0; i < 3; ++i) {
    expected.push_back(reduced(world, i, dtype, reduction));
  }
  for (int64_t i = 0; i < 3; ++i) {
    expected.push_back(rank == world - 1 ? reduced(world, i, dtype, reduction)
                                         : contribution(rank, i, dtype, reduction));
  }
  for (int64_t i = 0; i < 2; ++i) {
    expected.push_back(reduced(world, 2 * rank + i, dtype, reduction));
  }
  for (int64_t i = 0; i <= rank; ++i) {
    expected.push_back(reduced(world, rank * (rank + 1) / 2 + i, dtype, reduction));
  }
}

Program gather_and_scatter(Rank& rank, Seen& seen, DType dtype) {
  const int64_t world = rank.world_size();
  const auto last = static_cast<int32_t>(world - 1);
  const Slice spread = filled(rank, dtype, 2);
  co_await show(rank, seen, rank.broadcast(world_group, spread, last), spread);
  const Slice part = filled(rank, dtype, 2);
  const Slice whole = empty(rank, dtype, 2 * world);
  co_await show(rank, seen, rank.all_gather(world_group, part, whole), whole);
  const Slice at_root = empty(rank, dtype, 2 * world);
  co_await show(rank, seen, rank.gather(world_group, part, at_root, 0), at_root);
  const Slice dealt = filled(rank, dtype, 2 * world);
  const Slice got = empty(rank, dtype, 2);
  co_await show(rank, seen, rank.scatter(world_group, dealt, got, last), got);
}

void expect_gathers(int64_t world, int64_t rank, Numbers& expected) {
  for (int64_t i = 0; i < 2; ++i) {
    expected.push_back(contribution(world - 1, i));
  }
  for (const bool filled_here : {true, rank == 0}) {
    for (int64_t i = 0; i < 2 * world; ++i) {
      expected.push_back(filled_here ? contribution(i / 2, i % 2) : 0);
    }
  }
  for (int64_t i = 0; i < 2; ++i) {
    expected.push_back(contribution(world - 1, 2 * rank + i));
  }
}

// Rank r sends j + 1 elements to member j, and so gets r + 1 from each.
Program exchange_and_pass_on(Rank& rank, Seen& seen, DType dtype) {
  const int64_t world = rank.world_size();
  const Slice sent = filled(rank, dtype, 2 * world);
  const Slice got = empty(rank, dtype, 2 * world);
  co_await show(rank, seen, rank.all_to_all(world_group, sent, got), got);
  std::vector<int64_t> splits = uneven_splits(world);
  splits.insert(splits.end(), static_cast<size_t>(world), rank.id() + 1);
  const Slice uneven = filled(rank, dtype, world * (world + 1) / 2);
  const Slice from_all = empty(rank, dtype, world * (rank.id() + 1));
  // Members send different amounts in all, so each says its own.
  co_await show(rank, seen, rank.all_to_all(world_group, uneven, from_all, splits), from_all);
  const auto next = static_cast<int32_t>((rank.id() + 1) % world);
  const auto before = static_cast<int32_t>((rank.id() + world - 1) % world);
  const Slice ahead = filled(rank, dtype, 2);
  const Slice behind = empty(rank, dtype, 2);
  GroupedCall call(rank);
  call.send(world_group, ahead, next, 5).receive(world_group, behind, before, 5);
  co_await show(rank, seen, call.submit(), behind);
}

void expect_exchanges(int64_t world, int64_t rank, Numbers& expected) {
  for (int64_t from = 0; from < world; ++from) {
    for (int64_t i = 0; i < 2; ++i) {
      expected.push_back(contribution(from, 2 * rank + i));
    }
  }
  for (int64_t from = 0; from < world; ++from) {
    for (int64_t i = 0; i <= rank; ++i) {
      expected.push_back(contribution(from, rank * (rank + 1) / 2 + i));
    }
  }
  for (int64_t i = 0; i < 2; ++i) {
    expected.push_back(contribution((rank + world - 1) % world, i));
  }
}

// Everything that is no communication, and what moves no data.
Program compute_and_copy(Rank& rank, Seen& seen, DType dtype) {
  const Slice a = empty(rank, dtype, 2);
  const Slice b = empty(rank, dtype, 2);
  const Slice mean = empty(rank, dtype, 1);
  const Slice wide = empty(rank, DType::fp64, 2);
  apply(rank, Kernel::fill, {}, a, 3);
  apply(rank, Kernel::scale, a, b, 2);
  apply(rank, Kernel::add, b, a);
  apply(rank, Kernel::copy, a.part(0, 1), b.part(0, 1));
  apply(rank, Kernel::average, b, mean);
  const Ticket cast = apply(rank, Kernel::cast, b, wide);
  const Ticket copied = rank.copy(b, a, {.on = copy_stream, .after = {cast}});
  const Ticket timed = rank.compute(Time(1'000'000), {.after = {copied}});
  const Ticket host = rank.host(Time(1'000));
  const Ticket mark = rank.event({.after = {timed, host}});
  const Ticket met = rank.barrier(world_group, {.after = {mark}});
  const Rank::NewGroup made = rank.split_group(world_group, 0);
  const Ticket all[] = {met, made.ready};
  co_await rank.settle_all(all);
  for (const Slice& slice : {a, b, mean, wide}) {
    seen.push_back(rank.read(slice));
  }
}

void expect_compute(DType dtype, Numbers& expected) {
  const double mean = is_floating(dtype) ? 7.5 : 7;
  expected.insert(expected.end(), {9, 6, 9, 6, mean, 9, 6});
}

Program every_operation(Rank& rank, Seen& seen) {
  for (const DType dtype : dtypes) {
    for (const Reduction reduction : reductions) {
      co_await reduce_all_ways(rank, seen, dtype, reduction);
    }
    co_await gather_and_scatter(rank, seen, dtype);
    co_await exchange_and_pass_on(rank, seen, dtype);
    co_await compute_and_copy(rank, seen, dtype);
  }
}

Program average_of_ones(Rank& rank, Seen& seen) {
  const Slice data = metric(rank, DType::fp32, {1});
  const Ticket averaged = rank.all_reduce(world_group, data, Reduction::avg);
  co_await show(rank, seen, averaged, data);
}

// Beyond what travels in one message; not divisible by the number of ranks.
constexpr int64_t many_elements = 5003;

Program reduce_many(Rank& rank, Seen& seen) {
  for (const DType dtype : dtypes) {
    for (const Reduction reduction : reductions) {
      const Slice all = filled(rank, dtype, many_elements, reduction);
      co_await show(rank, seen, rank.all_reduce(world_group, all, reduction), all);
    }
  }
}

Numbers expected_on(int64_t world, int64_t rank) {
  Numbers expected;
  for (const DType dtype : dtypes) {
    for (const Reduction reduction : reductions) {
      expect_reductions(world, rank, dtype, reduction, expected);
    }
    expect_gathers(world, rank, expected);
    expect_exchanges(world, rank, expected);
    expect_compute(dtype, expected);
  }
  return expected;
}

}  // namespace

TEST_CASE("every operation leaves the values of its definition in both worlds") {
  Worlds worlds;
  for (int32_t world = 1; world <= 4; ++world) {
    const Arm arm = run_both(worlds, world_of(world), every_operation);
    CHECK(unfinished(arm).empty());
    for (int32_t rank = 0; rank < world; ++rank) {
      CHECK(numbers_of(arm.seen[static_cast<size_t>(rank)]) == expected_on(world, rank));
    }
  }
}

TEST_CASE("a long sum has the values of its definition in both worlds") {
  Worlds worlds;
  for (int32_t world = 2; world <= 4; ++world) {
    const Arm arm = run_both(worlds, world_of(world), reduce_many);
    Numbers expected;
    for (const DType dtype : dtypes) {
      for (const Reduction reduction : reductions) {
        for (int64_t i = 0; i < many_elements; ++i) {
          expected.push_back(reduced(world, i, dtype, reduction));
        }
      }
    }
    for (int32_t rank = 0; rank < world; ++rank) {
      CHECK((numbers_of(arm.seen[static_cast<size_t>(rank)]) == expected));
    }
  }
}

TEST_CASE("the order of division shows in both worlds alike") {
  Worlds worlds;
  for (const AverageOrder order : {AverageOrder::scale_then_sum, AverageOrder::sum_then_divide}) {
    RunOptions options = world_of(3);
    options.average_order = order;
    const Arm arm = run_both(worlds, options, average_of_ones);
    const float third = 1.0f * (1.0f / 3);
    const float mean = order == AverageOrder::scale_then_sum ? third + third + third : 1.0f;
    CHECK(numbers_of(arm.seen[0]) == Numbers{static_cast<double>(mean)});
  }
}

}  // namespace every_value_test
