#include "sim/alike_columns.hpp"

#include <catch2/catch.hpp>

#include "sim/flow_network.hpp"

using namespace lockstep;
using namespace lockstep::sim;

namespace alike_columns_test {

namespace {

TrafficPattern crossing(std::vector<LinkIndex> links) {
  TrafficPattern pattern;
  pattern.weights.assign(links.size(), 1);
  pattern.links = std::move(links);
  return pattern;
}

// Links 0 to 2 lead from three devices to link 3, which all share.
const std::vector<BytesPerSecond> capacities = {BytesPerSecond(10), BytesPerSecond(10),
                                                BytesPerSecond(10), BytesPerSecond(15)};

}  // namespace

TEST_CASE("a link that all columns cross carries what all of them send") {
  TrafficPattern pattern = crossing({0, 3});
  CHECK(add_other_columns({crossing({1, 3}), crossing({2, 3})}, capacities, pattern));
  CHECK(pattern.columns == 3);
  CHECK(pattern.with_columns == std::vector<uint32_t>{1, 3});
}

TEST_CASE("columns with links of their own take nothing from each other") {
  TrafficPattern pattern = crossing({0});
  CHECK(add_other_columns({crossing({1}), crossing({2})}, capacities, pattern));
  CHECK(pattern.with_columns.empty());
}

TEST_CASE("columns that cross other capacities, or share less, are not alike") {
  TrafficPattern narrow = crossing({0});
  CHECK_FALSE(add_other_columns({crossing({3})}, capacities, narrow));
  TrafficPattern pattern = crossing({0, 3});
  CHECK_FALSE(add_other_columns({crossing({1, 3}), crossing({2})}, capacities, pattern));
  TrafficPattern late = crossing({1});
  late.latency = Time(5);
  TrafficPattern soon = crossing({0});
  CHECK_FALSE(add_other_columns({late}, capacities, soon));
}

TEST_CASE("one transfer that stands for three takes as long as each of the three at once") {
  const std::vector<TrafficPattern> columns = {crossing({0, 3}), crossing({1, 3}),
                                               crossing({2, 3})};
  const auto plan_of = [](const TrafficPattern& pattern) {
    return TransferPlan{Time(), Bytes(300), &pattern.links, &pattern.weights};
  };
  FlowNetwork each(capacities);
  std::vector<FlowNetwork::Forecast> of_each;
  for (const TrafficPattern& column : columns) {
    each.start(Time(0), plan_of(column), of_each);
  }
  TrafficPattern first = columns[0];
  add_other_columns({columns[1], columns[2]}, capacities, first);
  TransferPlan plan = plan_of(first);
  plan.with_columns = &first.with_columns;
  plan.columns = first.columns;
  FlowNetwork one(capacities);
  std::vector<FlowNetwork::Forecast> of_one;
  one.start(Time(0), plan, of_one);
  // A third of 15 B/s for 300 B.
  CHECK(of_one.back().finish == Time(60'000'000'000'000));
  CHECK(of_each.back().finish == of_one.back().finish);
}

TEST_CASE("a transfer of a column meets one that does not cross all columns alike") {
  const std::vector<LinkIndex> uneven = {0, 1};
  TrafficPattern column = crossing({0, 3});
  add_other_columns({crossing({1, 3}), crossing({2, 3})}, capacities, column);
  TransferPlan own{Time(), Bytes(10), &column.links, &column.weights};
  own.with_columns = &column.with_columns;
  own.columns = column.columns;
  const TrafficPattern chain = crossing({0, 1, 3});
  TransferPlan wide{Time(), Bytes(10), &chain.links, &chain.weights};
  wide.uneven_columns = &uneven;
  FlowNetwork network(capacities);
  std::vector<FlowNetwork::Forecast> forecasts;
  const uint32_t first = network.start(Time(0), own, forecasts);
  CHECK_FALSE(network.is_shared_unevenly(first));
  CHECK(network.is_shared_unevenly(network.start(Time(0), wide, forecasts)));
}

TEST_CASE("a ring crosses the links of its members alike, and a chain does not") {
  // Two nodes of four links: each of two members sends over one and receives over one.
  const std::vector<BytesPerSecond> links(8, BytesPerSecond(10));
  const auto members_on = [](int64_t) { return size_t{2}; };
  CHECK(links_uneven_between_columns(crossing({0, 1, 2, 3, 4, 5, 6, 7}), links, 4, members_on)
            .empty());
  CHECK(links_uneven_between_columns(crossing({0, 1, 2, 3, 4}), links, 4, members_on) ==
        std::vector<LinkIndex>{4});
  TrafficPattern heavy = crossing({0, 1});
  heavy.weights[1] = 2;
  CHECK(links_uneven_between_columns(heavy, links, 4, members_on) == std::vector<LinkIndex>{0, 1});
}

}  // namespace alike_columns_test
