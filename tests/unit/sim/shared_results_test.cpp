#include "sim/shared_results.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "model/program/buffer_table.hpp"

using namespace lockstep;

namespace shared_results_test {

namespace {

SharedValues shared(std::initializer_list<double> numbers) {
  return std::make_shared<const Values>(Values::of(DType::fp32, numbers));
}

/// Counts how often it is computed.
struct Sum {
  int computed = 0;
  double of(sim::SharedResults& results, const std::vector<SharedValues>& arguments) {
    PureCall call;
    call.function = this;
    call.arguments = arguments;
    call.compute = [&] {
      ++computed;
      double sum = 0;
      for (const SharedValues& values : arguments) {
        sum += values->number(0);
      }
      return std::make_shared<const double>(sum);
    };
    return *std::static_pointer_cast<const double>(results.of(call));
  }
};

}  // namespace

TEST_CASE("a pure function of the same values is computed once") {
  sim::SharedResults results;
  Sum sum;
  const SharedValues one = shared({1});
  const SharedValues two = shared({2});
  CHECK(sum.of(results, {one, two}) == 3);
  CHECK(sum.of(results, {one, two}) == 3);
  CHECK(sum.computed == 1);
  CHECK(sum.of(results, {two, two}) == 4);
  CHECK(sum.of(results, {shared({1}), two}) == 3);  // equal, but not the same
  CHECK(sum.computed == 3);
  Sum other;
  CHECK(other.of(results, {one, two}) == 3);
  CHECK(other.computed == 1);
}

TEST_CASE("a result that was forgotten is computed anew, from the values that there are") {
  sim::SharedResults results;
  Sum sum;
  for (int i = 0; i < 300; ++i) {
    CHECK(sum.of(results, {shared({static_cast<double>(i)})}) == i);
  }
  CHECK(sum.computed == 300);
}

TEST_CASE("an error is nobody's result") {
  sim::SharedResults results;
  PureCall call;
  call.function = &results;
  int computed = 0;
  call.compute = [&]() -> std::shared_ptr<const void> {
    ++computed;
    throw std::runtime_error("no value");
  };
  CHECK_THROWS(results.of(call));
  CHECK_THROWS(results.of(call));
  CHECK(computed == 2);
}

TEST_CASE("who writes to shared values changes no other buffer, nor what was read") {
  BufferTable here(true, Bytes::max());
  BufferTable there(true, Bytes::max());
  const BufferSpec spec{DType::fp32, Purpose::metric, DeviceId{0}, 3};
  const Slice ours{here.allocate(spec), DType::fp32, 0, 3};
  const Slice theirs{there.allocate(spec), DType::fp32, 0, 3};
  CHECK(here.load(ours) == Values(DType::fp32, 3));
  const SharedValues whole = shared({1, 2, 3});
  here.store_shared(ours, whole);
  there.store_shared(theirs, whole);
  const SharedValues seen = here.share(ours);
  CHECK(seen == whole);
  here.store(ours.part(1, 1), Values::of(DType::fp32, {7}));
  CHECK(here.load(ours) == Values::of(DType::fp32, {1, 7, 3}));
  CHECK(*seen == *shared({1, 2, 3}));
  CHECK(there.load(theirs) == *shared({1, 2, 3}));
  CHECK(*there.share(theirs.part(1, 2)) == *shared({2, 3}));
}

}  // namespace shared_results_test
