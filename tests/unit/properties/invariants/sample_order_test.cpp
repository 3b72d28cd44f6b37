#include <catch2/catch.hpp>

#include "properties/invariants/every_sample_once.hpp"

using namespace lockstep;

namespace sample_order_test {

namespace {

// Two ranks, four samples each, two epochs.
std::vector<RankSamples> two_epochs(std::vector<int64_t> second) {
  return {
      {0, 0, {3, 0, 6, 1}}, {1, 0, {2, 7, 4, 5}}, {0, 1, {3, 0, 6, 1}}, {1, 1, std::move(second)}};
}

}  // namespace

TEST_CASE("an order that comes again in the next epoch is a forgotten set_epoch") {
  const std::vector<Finding> findings = order_changes(two_epochs({2, 7, 4, 5}));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].level == Level::warning);
  CHECK(findings[0].title == "epoch 1 repeats the order of epoch 0: set_epoch is not called");
  CHECK(order_changes(two_epochs({2, 4, 7, 5})).empty());
}

TEST_CASE("orders that were not shuffled may come again") {
  CHECK(order_changes(std::vector<RankSamples>{{0, 0, {0, 2, 4, 6}},
                                               {1, 0, {1, 3, 5, 7}},
                                               {0, 1, {0, 2, 4, 6}},
                                               {1, 1, {1, 3, 5, 7}}})
            .empty());
}

// 10 samples on 3 ranks without shuffling, as recorded in own-distributed-sampler.
TEST_CASE("an order that was not shuffled begins again where it is padded") {
  CHECK(order_changes(std::vector<RankSamples>{{0, 0, {0, 3, 6, 9}},
                                               {1, 0, {1, 4, 7, 0}},
                                               {2, 0, {2, 5, 8, 1}},
                                               {0, 1, {0, 3, 6, 9}},
                                               {1, 1, {1, 4, 7, 0}},
                                               {2, 1, {2, 5, 8, 1}}})
            .empty());
}

TEST_CASE("training may pad, but not give all samples to all ranks") {
  const std::vector<RankSamples> padded = {{0, 0, {0, 2, 4}}, {1, 0, {1, 3, 0}}};
  CHECK(samples_divided(padded, 5).empty());
  const std::vector<RankSamples> whole = {{0, 0, {0, 1, 2}}, {1, 0, {0, 1, 2}}};
  REQUIRE(samples_divided(whole, 3).size() == 1);
  CHECK(samples_divided(whole, 3)[0].level == Level::error);
}

}  // namespace sample_order_test
