// States of any shards, empty ones too, merge to the metric of all samples; and the mean over the
// shards is that metric exactly as far as the averaging table says.
#include <rapidcheck.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "model/metric/averaging.hpp"
#include "model/metric/definition.hpp"
#include "tests/property/held.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace metric_merge_test {

namespace {

struct Sample {
  double score = 0;
  int64_t label = 0;
  int64_t predicted = 0;
  int64_t query = 0;
};

struct Subject {
  const char* class_name;
  bool multiclass;
};

constexpr int64_t classes = 3;

MetricDefinition define(const Subject& subject) {
  Object object;
  object.name = subject.class_name;
  if (subject.multiclass) {
    object.arguments.push_back({"num_classes", PlainValue{classes}, {}});
  }
  return define_metric("metric", object);
}

// Whole scores of a 64th: sums of them and of their squares are exact, so any order gives the same.
std::vector<Sample> some_samples() {
  const auto count = *rc::gen::inRange<size_t>(4, 40);
  std::vector<Sample> samples;
  for (size_t i = 0; i < count; ++i) {
    Sample sample;
    sample.score = *rc::gen::inRange(1, 64) / 64.0;
    sample.label = *rc::gen::inRange<int64_t>(0, classes);
    sample.predicted = *rc::gen::inRange<int64_t>(0, classes);
    sample.query = *rc::gen::inRange<int64_t>(0, 4);
    samples.push_back(sample);
  }
  return samples;
}

std::vector<std::vector<Sample>> sharded(const std::vector<Sample>& samples, size_t shards) {
  std::vector<std::vector<Sample>> result(shards);
  for (const Sample& sample : samples) {
    result[*rc::gen::inRange<size_t>(0, shards)].push_back(sample);
  }
  return result;
}

bool is_regression(const std::string& name) {
  return name == "R2Score" || name == "MeanMetric" || name == "ExplainedVariance" ||
                 name == "TweedieDevianceScore" || name.ends_with("Error") ||
                 name.ends_with("CorrCoef")
             ? !name.starts_with("Binary") && !name.starts_with("Multiclass")
             : false;
}

void update(const MetricDefinition& metric, const Subject& subject,
            const std::vector<Sample>& samples, MetricState& state) {
  if (samples.empty()) {
    return;
  }
  std::vector<double> scores;
  std::vector<double> labels;
  std::vector<double> predicted;
  std::vector<double> queries;
  const std::string name = subject.class_name;
  const bool regression = is_regression(name);
  for (const Sample& sample : samples) {
    scores.push_back(sample.score);
    labels.push_back(regression           ? static_cast<double>(sample.label) / 4
                     : subject.multiclass ? static_cast<double>(sample.label)
                                          : static_cast<double>(sample.label % 2));
    predicted.push_back(static_cast<double>(sample.predicted));
    queries.push_back(static_cast<double>(sample.query));
  }
  const std::vector<int64_t> shape = {static_cast<int64_t>(samples.size())};
  const Tensor preds{shape, Values::of(subject.multiclass ? DType::int64 : DType::fp32,
                                       subject.multiclass ? predicted : scores)};
  const Tensor target{shape, Values::of(regression ? DType::fp32 : DType::int64, labels)};
  const Tensor indexes{shape, Values::of(DType::int64, queries)};
  metric.metric->update({&preds, &target, &indexes}, state);
}

double value(const MetricDefinition& metric, const MetricState& state) {
  return metric.metric->compute(state).values.number(0);
}

bool near(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-4 * std::max(1.0, std::abs(b));
}

constexpr Subject subjects[] = {{"BinaryAccuracy", false},
                                {"BinaryPrecision", false},
                                {"BinaryRecall", false},
                                {"BinaryF1Score", false},
                                {"BinaryConfusionMatrix", false},
                                {"BinaryAUROC", false},
                                {"BinaryAveragePrecision", false},
                                {"MulticlassAccuracy", true},
                                {"MulticlassF1Score", true},
                                {"MulticlassConfusionMatrix", true},
                                {"MeanSquaredError", false},
                                {"MeanAbsoluteError", false},
                                {"R2Score", false},
                                {"PearsonCorrCoef", false},
                                {"MeanMetric", false},
                                {"SumMetric", false},
                                {"MinMetric", false},
                                {"MaxMetric", false},
                                {"RetrievalMAP", false},
                                {"BinarySpecificity", false},
                                {"BinaryHammingDistance", false},
                                {"BinaryNegativePredictiveValue", false},
                                {"BinaryCohenKappa", false},
                                {"BinaryJaccardIndex", false},
                                {"BinaryMatthewsCorrCoef", false},
                                {"BinaryHingeLoss", false},
                                {"BinaryCalibrationError", false},
                                {"BinaryEER", false},
                                {"MulticlassCohenKappa", true},
                                {"MulticlassJaccardIndex", true},
                                {"MulticlassMatthewsCorrCoef", true},
                                {"MeanSquaredLogError", false},
                                {"MeanAbsolutePercentageError", false},
                                {"SymmetricMeanAbsolutePercentageError", false},
                                {"WeightedMeanAbsolutePercentageError", false},
                                {"LogCoshError", false},
                                {"TweedieDevianceScore", false},
                                {"RelativeSquaredError", false},
                                {"ExplainedVariance", false},
                                {"ConcordanceCorrCoef", false},
                                {"SpearmanCorrCoef", false},
                                {"KendallRankCorrCoef", false},
                                {"RetrievalMRR", false},
                                {"RetrievalNormalizedDCG", false},
                                {"RetrievalPrecision", false},
                                {"RetrievalRecall", false},
                                {"RetrievalHitRate", false},
                                {"RetrievalFallOut", false},
                                {"RetrievalRPrecision", false},
                                {"RetrievalAUROC", false}};

// TorchMetrics scales a correlation by the greatest deviation that a rank has seen of its own mean:
// where none has seen any, it is nan (recording pearson-of-one-sample-each).
bool sees_no_deviation(const Subject& subject, const std::vector<std::vector<Sample>>& shards) {
  const std::string name = subject.class_name;
  const auto all_alike = [&](auto number) {
    return std::all_of(shards.begin(), shards.end(), [&](const std::vector<Sample>& shard) {
      return std::all_of(shard.begin(), shard.end(), [&](const Sample& sample) {
        return number(sample) == number(shard.front());
      });
    });
  };
  return (name == "PearsonCorrCoef" || name == "ConcordanceCorrCoef") &&
         (all_alike([](const Sample& sample) { return sample.score; }) ||
          all_alike([](const Sample& sample) { return static_cast<double>(sample.label); }));
}

bool merges() {
  return holds("states of any shards merge to the metric of all samples", 1000, [] {
    const Subject subject = subjects[*rc::gen::inRange<size_t>(0, std::size(subjects))];
    const MetricDefinition metric = define(subject);
    std::vector<Sample> samples = some_samples();
    for (size_t i = 0; i < samples.size(); ++i) {
      samples[i].score += static_cast<double>(i) / 8192;  // no ties within a query
    }
    auto shards = sharded(samples, *rc::gen::inRange<size_t>(1, 6));
    if (subject.class_name == std::string("KendallRankCorrCoef")) {
      // Its lists are of columns, beside which what an empty rank sends does not fit.
      std::erase_if(shards, [](const std::vector<Sample>& shard) { return shard.empty(); });
    }
    RC_PRE(!sees_no_deviation(subject, shards));
    std::vector<MetricState> states;
    std::vector<Sample> in_rank_order;
    for (const std::vector<Sample>& shard : shards) {
      states.push_back(metric.metric->initial_state());
      update(metric, subject, shard, states.back());
      in_rank_order.insert(in_rank_order.end(), shard.begin(), shard.end());
    }
    MetricState whole = metric.metric->initial_state();
    update(metric, subject, in_rank_order, whole);
    const double all = value(metric, whole);
    const double merged_value = value(metric, merged(*metric.metric, states));
    RC_LOG() << subject.class_name << ": merged " << merged_value << ", all " << all << "\n";
    RC_ASSERT(near(merged_value, all));
    std::reverse(states.begin(), states.end());
    RC_ASSERT(near(value(metric, merged(*metric.metric, states)), all));
  });
}

// What a shard's value weighs in the mean of the whole, by the table.
double weight_of(Averaging averaging, const std::vector<Sample>& shard) {
  if (averaging == Averaging::equal_targets) {
    double sum = 0;
    for (const Sample& sample : shard) {
      sum += static_cast<double>(sample.label) / 4;
    }
    return sum;
  }
  return static_cast<double>(std::count_if(shard.begin(), shard.end(), [&](const Sample& sample) {
    switch (averaging) {
      case Averaging::equal_predicted_positives: return sample.score > 0.5;
      case Averaging::equal_predicted_negatives: return sample.score <= 0.5;
      case Averaging::equal_positives: return sample.label % 2 == 1;
      case Averaging::equal_negatives: return sample.label % 2 == 0;
      default: return true;
    }
  }));
}

bool averages() {
  return holds(
      "a mean over shards is the metric of all where the averaging table says so", 1000, [] {
        constexpr Subject averaged[] = {{"BinaryAccuracy", false},
                                        {"BinaryPrecision", false},
                                        {"BinaryRecall", false},
                                        {"BinarySpecificity", false},
                                        {"BinaryNegativePredictiveValue", false},
                                        {"BinaryHammingDistance", false},
                                        {"BinaryHingeLoss", false},
                                        {"MeanSquaredError", false},
                                        {"MeanSquaredLogError", false},
                                        {"MeanAbsolutePercentageError", false},
                                        {"WeightedMeanAbsolutePercentageError", false},
                                        {"LogCoshError", false},
                                        {"TweedieDevianceScore", false},
                                        {"MeanAbsoluteError", false}};
        const Subject subject = averaged[*rc::gen::inRange<size_t>(0, std::size(averaged))];
        const MetricDefinition metric = define(subject);
        const Averaging averaging = *averaging_of(subject.class_name, false);
        const std::vector<Sample> samples = some_samples();
        double weighted = 0;
        double weights = 0;
        double mean = 0;
        bool equal_weights = true;
        auto shards = sharded(samples, *rc::gen::inRange<size_t>(2, 5));
        std::erase_if(shards, [](const std::vector<Sample>& shard) { return shard.empty(); });
        for (const std::vector<Sample>& shard : shards) {
          MetricState state = metric.metric->initial_state();
          update(metric, subject, shard, state);
          const double weight = weight_of(averaging, shard);
          RC_PRE(weight > 0 || averaging != Averaging::equal_targets);  // divided by almost nothing
          weighted += weight * value(metric, state);
          weights += weight;
          mean += value(metric, state) / static_cast<double>(shards.size());
          equal_weights = equal_weights && weight == weight_of(averaging, shards.front());
        }
        MetricState whole = metric.metric->initial_state();
        update(metric, subject, samples, whole);
        const double all = value(metric, whole);
        RC_ASSERT(weights == 0 || near(weighted / weights, all));
        RC_ASSERT(!equal_weights || near(mean, all));
      });
}

bool never_averages() {
  return holds("F1 of shards of unequal hit rates is not the mean of theirs", 1000, [] {
    // tp 1 of 2 positives, and all of n: the mean of F1 is (2/3 + 1) / 2, whatever n.
    const Subject subject{"BinaryF1Score", false};
    const MetricDefinition metric = define(subject);
    const std::vector<Sample> first = {{0.9, 1, 0, 0}, {0.1, 1, 0, 0}};
    const std::vector<Sample> second(*rc::gen::inRange<size_t>(1, 20), Sample{0.9, 1, 0, 0});
    std::vector<MetricState> states(2, metric.metric->initial_state());
    update(metric, subject, first, states[0]);
    update(metric, subject, second, states[1]);
    const double mean = (value(metric, states[0]) + value(metric, states[1])) / 2;
    RC_ASSERT(averaging_of("BinaryF1Score", false) == Averaging::never);
    RC_ASSERT(!near(mean, value(metric, merged(*metric.metric, states))));
  });
}

}  // namespace

TEST_CASE("states of any shards merge to the metric of all samples") { CHECK(merges()); }

TEST_CASE("a mean over shards is the metric of all where the averaging table says so") {
  CHECK(averages());
}

TEST_CASE("F1 of shards of unequal hit rates is not the mean of theirs") {
  CHECK(never_averages());
}

}  // namespace metric_merge_test
