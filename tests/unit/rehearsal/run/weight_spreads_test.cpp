#include "rehearsal/run/weight_spreads.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <string>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace weight_spreads_test {

namespace {

using cli::WeightObserver;
using cli::WeightSpreads;

std::vector<double> apart_of(const WeightSpreads& spreads) {
  std::vector<double> apart;
  for (const WeightSpreads::OfStep& one : spreads.steps) {
    apart.push_back(one.apart);
  }
  return apart;
}

/// Ranks with one parameter of two elements each, as a simulation shows them.
class Observed {
 public:
  explicit Observed(int32_t ranks) : log_(ranks), observer_(&log_) {
    for (size_t rank = 0; rank < static_cast<size_t>(ranks); ++rank) {
      BufferTable& buffers = buffers_.emplace_back(true, Bytes::max());
      const BufferId id = buffers.allocate({DType::fp32, Purpose::parameter, {}, 2});
      log_.ranks[rank].final_parameter_places = {{id, DType::fp32, 0, 2}};
    }
  }

  RankLog& log(size_t rank) { return log_.ranks[rank]; }
  void step(size_t rank, double first, double second) {
    buffers_[rank].store(log_.ranks[rank].final_parameter_places.front(),
                         Values::of(DType::fp32, {first, second}));
    observer_.step_ended(static_cast<int32_t>(rank), buffers_[rank]);
  }
  const WeightSpreads& spreads() const { return observer_.spreads(); }

 private:
  RunLog log_;
  WeightObserver observer_;
  std::deque<BufferTable> buffers_;
};

/// A weight that begins at 0, inputs of 1, and the target 1 on rank 0, -1 on rank 1.
std::string one_weight(const std::string& more, const std::string& strategy) {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n" + more +
         "model: {input: [1], layers: [{Linear: {in_features: 1, out_features: 1, bias: false}}], "
         "initial: {0.weight: 0}, loss: MSELoss}\noptimizer: {SGD: {lr: 0.25}}\n"
         "data: {train: {batch_size: 1, sampler: distributed, shuffle: false, inputs: [[1], [1], "
         "[1], [1], [1], [1], [1], [1], [1], [1]], targets: [[1], [-1], [1], [-1], [1], [-1], [1], "
         "[-1], [1], [-1]]}}\ntrainer: {accelerator: gpu, devices: 2, max_epochs: 1, "
         "num_sanity_val_steps: 0, limit_val_batches: 0, strategy: " +
         strategy + "}\n";
}

cli::OneRun run_of(const std::string& text) {
  return std::move(rehearsed(text).front().result.run);
}

}  // namespace

TEST_CASE("of many steps every second, fourth, .. stays, and the greatest of all") {
  WeightSpreads spreads;
  for (int64_t step = 1; step <= 1000; ++step) {
    spreads.add({step, step == 333 ? 7.0 : 1.0}, step == 333 ? 5 : 2);
  }
  // 1000 steps fit 256 places as every fourth.
  CHECK(spreads.every == 4);
  CHECK(spreads.steps.size() == 250);
  CHECK(spreads.steps.front().step == 4);
  CHECK(spreads.steps.back().step == 1000);
  REQUIRE(spreads.greatest.has_value());
  CHECK(spreads.greatest->step == 333);
  CHECK(spreads.greatest->apart == 7);
  CHECK(spreads.parameter == 5);
}

TEST_CASE("ranks are compared after the same number of steps, whatever the pace of each") {
  Observed ranks(2);
  ranks.step(0, 1, 0);
  ranks.step(0, 2, 0);
  ranks.step(0, 3, 0);
  CHECK(ranks.spreads().empty());
  ranks.step(1, 1, -0.5);
  ranks.step(1, 5, 0);
  CHECK(apart_of(ranks.spreads()) == std::vector<double>{0.5, 3});
  CHECK(ranks.spreads().greatest->step == 2);
}

TEST_CASE("servers take no steps, and a NaN is as far apart as can be") {
  Observed ranks(3);
  ranks.log(2).runs_trainer = false;
  ranks.step(0, 1, 1);
  ranks.step(1, 2, 1);
  CHECK(apart_of(ranks.spreads()) == std::vector<double>{1});
  ranks.step(0, 1, 1);
  ranks.step(1, std::numeric_limits<double>::quiet_NaN(), 1);
  REQUIRE(ranks.spreads().steps.size() == 2);
  CHECK(std::isnan(ranks.spreads().steps.back().apart));
  CHECK(ranks.spreads().greatest->step == 2);
}

TEST_CASE("weights that a log does not show are not looked at") {
  Observed ranks(2);
  ranks.log(1).final_parameter_places.clear();
  ranks.step(0, 1, 1);
  CHECK(ranks.spreads().empty());
}

// A local step gives w / 2 + target / 2, from 0 on both ranks; the average of the two is 0.
TEST_CASE("the spread over time is that of local steps between averages") {
  const cli::OneRun run =
      run_of(one_weight("",
                        "{DDPStrategy: {ddp_comm_hook: noop_hook, ddp_comm_state: "
                        "{start_localSGD_iter: 0}, model_averaging_period: 3}}"));
  CHECK(apart_of(run.weight_spreads) == std::vector<double>{0, 1, 1.5, 0, 1});
  CHECK(run.weight_spreads.every == 1);
}

// w becomes the mean of both, which is 0, less a step by the gradient at the weight before.
TEST_CASE("the spread over time of a decentralized average follows its recursion") {
  const cli::OneRun run =
      run_of(one_weight("versions: {lightning: \"1.6\"}\n",
                        "{BaguaStrategy: {algorithm: decentralized, hierarchical: false}}"));
  std::vector<double> expected;
  double weight = 0;
  for (int step = 0; step < 5; ++step) {
    weight = -0.25 * 2 * (weight - 1);
    expected.push_back(2 * weight);
  }
  CHECK(apart_of(run.weight_spreads) == expected);
}

TEST_CASE("where all ranks hold the same by design nothing is collected") {
  CHECK(run_of(one_weight("", "ddp")).weight_spreads.empty());
}

}  // namespace weight_spreads_test
