#include "rehearsal/run/value_memory.hpp"

#include <catch2/catch.hpp>

#include "model/program/buffer_table.hpp"

using namespace lockstep;

namespace value_memory_test {

namespace {

BufferSpec metric_of(int64_t elements) {
  BufferSpec spec;
  spec.dtype = DType::fp32;
  spec.elements = elements;
  spec.purpose = Purpose::metric;
  return spec;
}

}  // namespace

TEST_CASE("values count against their budget until the last holder lets them go") {
  const auto budget = std::make_shared<cli::ValueMemory>(Bytes(100));
  auto first = charged(budget, Bytes(60), [] { return Values(DType::fp32, 15); });
  const auto shared = first;
  CHECK(budget->held() == Bytes(60));
  first = nullptr;
  CHECK(budget->held() == Bytes(60));
  CHECK(shared->size() == 15);
  CHECK_THROWS_AS(charged(budget, Bytes(41), [] { return Values(); }), ValueBudgetExceeded);
  CHECK(budget->held() == Bytes(60));
  CHECK_NOTHROW(charged(budget, Bytes(40), [] { return Values(); }));
}

TEST_CASE("a budget remembers the statement at which it was exceeded first") {
  const auto budget = std::make_shared<cli::ValueMemory>(Bytes(10));
  budget->executing(site_id("a"));
  CHECK_FALSE(budget->exceeded());
  CHECK_THROWS_AS(ValueCharge(budget, Bytes(11)), ValueBudgetExceeded);
  budget->executing(site_id("b"));
  CHECK_THROWS_AS(ValueCharge(budget, Bytes(12)), ValueBudgetExceeded);
  CHECK(budget->exceeded());
  CHECK(budget->exceeded_at() == site_id("a"));
  budget->begin_run();
  CHECK_FALSE(budget->exceeded());
}

TEST_CASE("buffers of several ranks that share values count once") {
  const auto budget = std::make_shared<cli::ValueMemory>(Bytes(1000));
  BufferTable first(false, Bytes::max(), budget);
  BufferTable second(false, Bytes::max(), budget);
  const BufferId of_first = first.allocate(metric_of(100));
  const BufferId of_second = second.allocate(metric_of(100));
  CHECK(budget->held() == Bytes(0));  // zeros are not stored
  first.store({of_first, DType::fp32, 0, 100}, Values(DType::fp32, 100));
  CHECK(budget->held() == Bytes(400));
  second.store_shared({of_second, DType::fp32, 0, 100},
                      first.share({of_first, DType::fp32, 0, 100}));
  CHECK(budget->held() == Bytes(400));
  second.store({of_second, DType::fp32, 0, 1},
               Values::of(DType::fp32, {1.0}));  // copies what it shares
  CHECK(budget->held() == Bytes(800));
  CHECK_THROWS_AS(first.share({of_first, DType::fp32, 0, 60}), ValueBudgetExceeded);
  first.release(of_first);
  CHECK(budget->held() == Bytes(400));
}

}  // namespace value_memory_test
