#include "model/core/units.hpp"

#include <catch2/catch.hpp>
#include <concepts>

using namespace lockstep;
using namespace lockstep::literals;

namespace units_test {

namespace {

template <class A, class B>
concept Adds = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Compares = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Divides = requires(A a, B b) {
  a / b;
};

// Units that do not match do not compile.
static_assert(Adds<Time, Time> && !Adds<Time, Bytes> && !Adds<Bytes, Flops> &&
              !Adds<Time, int64_t>);
static_assert(!Adds<BytesPerSecond, Bytes> && !Adds<Flops, FlopsPerSecond>);
static_assert(Compares<Bytes, Bytes> && !Compares<Bytes, Time> && !Compares<Time, int64_t>);
static_assert(!Divides<Flops, BytesPerSecond> && !Divides<Bytes, FlopsPerSecond>);
static_assert(!std::convertible_to<int64_t, Time> && !std::convertible_to<Bytes, int64_t>);
static_assert(std::same_as<decltype(1_MiB / 1_GBps), Time>);

}  // namespace

TEST_CASE("4 KiB at 900 GB/s is 4551 picoseconds, to the nearest") {
  CHECK((4_KiB / BytesPerSecond(900'000'000'000)) == 4551_ps);  // 4551.1
  CHECK((Bytes(1) / BytesPerSecond(3'000'000'000'000)) == 0_ps);
  CHECK((Bytes(2) / BytesPerSecond(3'000'000'000'000)) == 1_ps);
}

TEST_CASE("literals count in the unit's own base") {
  CHECK(1_s == Time(1'000'000'000'000));
  CHECK(1_min == 60_s);
  CHECK(1_GiB == Bytes(1'073'741'824));
}

TEST_CASE("a quantity that leaves 64 bits throws") {
  CHECK_THROWS_AS(Time::max() + 1_ps, QuantityOverflow);
  CHECK_THROWS_AS(Bytes::max() * 2, QuantityOverflow);
  CHECK_THROWS_AS(Bytes::max() / BytesPerSecond(1), QuantityOverflow);
}

}  // namespace units_test
