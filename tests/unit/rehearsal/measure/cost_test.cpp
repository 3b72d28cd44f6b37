// Money: the price of what is paid for, times the predicted time.
#include "rehearsal/measure/cost.hpp"

#include "model/cluster/list_prices.hpp"
#include "model/cluster/presets.hpp"
#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace cost_test {

namespace {

// 50 batches of 8 samples, each 72 s forward and 72 s backward: two hours, and some microseconds
// for what nobody computes.
std::string two_hours(const std::string& cluster, const std::string& trainer) {
  return "version: 1\ncluster: {" + cluster +
         "}\n"
         "model: {layers: [{Linear: {in_features: 4, out_features: 4}}, {Cost: {parameters: 0, "
         "forward: 9 s, backward: 9 s, activation: 0 B}}], input: [4], loss: MSELoss}\n"
         "trainer: {accelerator: gpu, max_epochs: 1, " +
         trainer +
         "}\n"
         "data: {train: {batches: 50, batch_size: 8}}\nverify: {numerics: false}\n";
}

Cost cost_in(const std::string& text) {
  const std::optional<Cost> cost = cost_of(advised(text));
  REQUIRE(cost);
  return *cost;
}

}  // namespace

TEST_CASE("nodes are paid for whole, however few of their GPUs train") {
  const Cost cost = cost_in(
      two_hours("preset: dgx-a100, nodes: 1, price: {amount: 30, currency: EUR}", "devices: 2"));
  CHECK(cost.units == 1);
  CHECK(cost.currency == "EUR");
  CHECK(cost.total == Approx(30 * 2).epsilon(1e-4));
  // Two GPUs take 16 samples in 144 s, so a million in 9,000,000 s, which are 2,500 hours.
  REQUIRE(cost.per_million_samples);
  CHECK(*cost.per_million_samples == Approx(30 * 2500).epsilon(1e-4));
  CHECK_FALSE(cost.per_billion_tokens);
}

TEST_CASE("one device needs one node, whatever the trainer says") {
  const Cost cost = cost_in(two_hours("preset: dgx-a100, nodes: 2, price: {amount: 30}",
                                      "devices: 8, num_nodes: 2, strategy: single_device"));
  CHECK(cost.units == 1);
  CHECK(cost.per_hour == Approx(30));
  // 8 samples in 144 s: a million in 18,000,000 s, which are 5,000 hours.
  REQUIRE(cost.per_million_samples);
  CHECK(*cost.per_million_samples == Approx(30 * 5000).epsilon(1e-4));
}

TEST_CASE("by the GPU, those that train are paid for") {
  const Cost cost =
      cost_in(two_hours("preset: dgx-a100, nodes: 2, price: {amount: 2.5, per: gpu_hour}",
                        "devices: 8, num_nodes: 2, strategy: ddp"));
  CHECK(cost.units == 16);
  CHECK(cost.currency == "USD");
  CHECK(cost.per_hour == Approx(40));
  CHECK(cost.total == Approx(80).epsilon(1e-3));
}

TEST_CASE("a cloud's node costs its list price, unless the scenario says otherwise") {
  // 2 nodes x 21.957642 USD x 2 h
  const std::string trainer = "devices: 8, num_nodes: 2, strategy: ddp";
  const Cost listed = cost_in(two_hours("preset: p4d, nodes: 2", trainer));
  CHECK(listed.total == Approx(87.830568).epsilon(1e-3));
  CHECK(listed.source.find("2026-08-26") != std::string::npos);
  const Cost own = cost_in(two_hours("preset: p4d, nodes: 2, price: {amount: 10}", trainer));
  CHECK(own.total == Approx(40).epsilon(1e-3));
}

TEST_CASE("a machine without a price, or with GPUs of its own, costs nothing that is known") {
  const Rehearsal unknown = advised(two_hours("preset: dgx-a100, nodes: 1", "devices: 2"));
  CHECK_FALSE(cost_of(unknown));
  CHECK(why_no_cost(unknown).find("cluster: {price:") != std::string::npos);
  CHECK_FALSE(cost_of(advised(two_hours("preset: p4d, nodes: 1, gpu: h100", "devices: 2"))));
  CHECK_FALSE(cost_of(advised(two_hours("preset: p4d, nodes: 1, gpus: 4", "devices: 2"))));
}

TEST_CASE("every list price is that of a preset, with its terms and source") {
  for (const ListPrice& price : list_prices()) {
    INFO(price.cluster);
    CHECK(cluster_preset(price.cluster));
    CHECK(price.usd_per_node_hour > 0);
    CHECK_FALSE(price.terms.empty());
    CHECK(price.source.find(", 202") != std::string_view::npos);
  }
}

TEST_CASE("expectations name the cost") {
  const auto judged = [](const std::string& expectation) {
    const Rehearsal ran =
        advised(two_hours("preset: dgx-a100, nodes: 1, price: {amount: 30}", "devices: 2") +
                "expect: ['" + expectation + "']\n");
    REQUIRE(ran.expectations.size() == 1);
    REQUIRE(ran.expectations.front().judged);
    return ran.expectations.front().met;
  };
  CHECK(judged("cost.total < 61"));
  CHECK_FALSE(judged("cost.total < 59"));
  CHECK(judged("cost.currency == ''USD''"));
}

TEST_CASE("a price is an amount, a currency of three capitals and what it is for") {
  const auto wrong = [](const std::string& price) {
    const Collected collected =
        collect(source_of_text(two_hours("preset: dgx-a100, price: " + price, "devices: 2")));
    return collected.diagnostics.empty() ? "" : collected.diagnostics.front().message;
  };
  CHECK(wrong("{amount: 2}").empty());
  CHECK(wrong("{currency: USD}") == "`price` needs an `amount`");
  CHECK(wrong("{amount: 2, currency: dollars}") ==
        "`currency` takes the three capital letters of a currency");
  CHECK_FALSE(wrong("{amount: -2}").empty());
  CHECK_FALSE(wrong("{amount: 2, per: hour}").empty());
  CHECK_FALSE(wrong("2.5").empty());
}

TEST_CASE("money is shown with as many digits as matter") {
  CHECK(money_text(1234567.2, "USD") == "1,234,567 USD");
  CHECK(money_text(12.345, "EUR") == "12.35 EUR");
  CHECK(money_text(0.0012345, "USD") == "0.00123 USD");
  CHECK(money_text(0, "USD") == "0 USD");
}

}  // namespace cost_test
