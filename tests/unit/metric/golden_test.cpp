// Values that were worked out by hand or stand in the literature, none from our own output.
#include <catch2/catch.hpp>
#include <cmath>

#include "model/expression/tensor.hpp"
#include "model/metric/functional.hpp"
#include "model/metric/metric_object.hpp"

using namespace lockstep;

namespace golden_test {

namespace {

Tensor scores(std::initializer_list<double> numbers) {
  return {{static_cast<int64_t>(numbers.size())}, Values::of(DType::fp32, numbers)};
}

Tensor labels(std::initializer_list<double> numbers) {
  return {{static_cast<int64_t>(numbers.size())}, Values::of(DType::int64, numbers)};
}

PlainValue plain(int64_t number) { return {number}; }

MetricDefinition define(const std::string& class_name,
                        std::vector<std::pair<std::string, PlainValue>> arguments = {}) {
  Object object;
  object.name = class_name;
  for (auto& [name, value] : arguments) {
    object.arguments.push_back({name, value, {}});
  }
  return define_metric("metric", object);
}

MetricState state_of(const MetricDefinition& metric, const Tensor& predictions,
                     const Tensor& target) {
  MetricState state = metric.metric->initial_state();
  metric.metric->update({&predictions, &target}, state);
  return state;
}

double query_average_precision_of(std::initializer_list<double> predictions,
                                  std::initializer_list<double> relevance) {
  const std::vector<Value> arguments = {Value(scores(predictions)), Value(labels(relevance))};
  return call_metric_function("retrieval_average_precision", arguments).tensor().values.number(0);
}

double value(const MetricDefinition& metric, const MetricState& state) {
  return metric.metric->compute(state).values.number(0);
}

}  // namespace

TEST_CASE("F1 of two ranks is 0.8 and the mean of theirs is not") {
  const MetricDefinition f1 = define("BinaryF1Score");
  const MetricState first = state_of(f1, labels({1, 0}), labels({1, 1}));
  const MetricState second = state_of(f1, labels({1, 1, 1, 1}), labels({1, 1, 1, 0}));
  CHECK(value(f1, first) == Approx(2.0 / 3));
  CHECK(value(f1, second) == Approx(6.0 / 7));
  CHECK(value(f1, merged(*f1.metric, {first, second})) == Approx(0.8));
}

TEST_CASE("exact AUROC of two ranks is that of all samples") {
  const MetricDefinition auroc = define("BinaryAUROC");
  const MetricState first = state_of(auroc, scores({.1, .4, .35, .8}), labels({0, 0, 1, 1}));
  const MetricState second = state_of(auroc, scores({.9, .2, .6, .3}), labels({1, 0, 0, 0}));
  CHECK(value(auroc, first) == Approx(0.75));
  CHECK(value(auroc, second) == Approx(1.0));
  CHECK(value(auroc, merged(*auroc.metric, {first, second})) == Approx(13.0 / 15));
}

TEST_CASE("binned AUROC depends on the number of thresholds, and not monotonically") {
  const Tensor predictions = scores({.1, .4, .35, .8, .9, .2, .6, .3});
  const Tensor target = labels({0, 0, 1, 1, 1, 0, 0, 0});
  const std::vector<std::pair<int64_t, double>> expected = {
      {2, 0.5}, {3, 11.0 / 15}, {5, 13.0 / 15}, {11, 12.5 / 15}, {101, 13.0 / 15}};
  for (const auto& [thresholds, area] : expected) {
    const MetricDefinition auroc = define("BinaryAUROC", {{"thresholds", plain(thresholds)}});
    INFO(thresholds);
    CHECK(value(auroc, state_of(auroc, predictions, target)) == Approx(area));
  }
}

TEST_CASE("R2 of all samples lies far above that of each rank") {
  const MetricDefinition r2 = define("R2Score");
  const MetricState first = state_of(r2, scores({1.1, 1.9}), scores({1, 2}));
  const MetricState second = state_of(r2, scores({5.2, 5.9}), scores({5, 6}));
  CHECK(value(r2, first) == Approx(0.96));
  CHECK(value(r2, second) == Approx(0.9));
  CHECK(value(r2, merged(*r2.metric, {first, second})) == Approx(1 - 0.07 / 17).epsilon(1e-5));
}

TEST_CASE("perplexity of all tokens is their geometric mean") {
  const MetricDefinition perplexity = define("Perplexity");
  // Of two words with logits (a, 0) the first has -log p = log(1 + exp(-a)).
  const auto tokens = [&](double nats, int64_t count) {
    const double logit = -std::log(std::exp(nats) - 1);
    Tensor predictions = zeros(DType::fp32, {1, count, 2});
    for (int64_t i = 0; i < count; ++i) {
      predictions.values.set(2 * i, logit);
    }
    return state_of(perplexity, predictions, zeros(DType::int64, {1, count}));
  };
  const auto both = [&](int64_t first, int64_t second) {
    return value(perplexity, merged(*perplexity.metric, {tokens(1, first), tokens(3, second)}));
  };
  CHECK(value(perplexity, tokens(1, 5)) == Approx(std::exp(1.0)).epsilon(1e-5));
  CHECK(both(10, 10) == Approx(7.389).epsilon(1e-4));
  CHECK(both(30, 10) == Approx(4.482).epsilon(1e-4));
}

TEST_CASE("average precision counts hits up to each relevant item") {
  CHECK(query_average_precision_of({.2, .3, .5}, {1, 0, 1}) == Approx(5.0 / 6));
  CHECK(query_average_precision_of({.9, .5}, {1, 0}) == Approx(1.0));
  CHECK(query_average_precision_of({.9, .5, .2, .3}, {1, 0, 1, 0}) == Approx(0.75));
}

}  // namespace golden_test
