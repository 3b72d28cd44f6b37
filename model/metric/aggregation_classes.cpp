#include <array>

#include "model/metric/aggregation.hpp"
#include "model/metric/catalogue.hpp"
#include "model/metric/classification_arguments.hpp"
#include "model/metric/running.hpp"

namespace lockstep {

namespace {

using Made = std::shared_ptr<const Metric>;

std::unique_ptr<const Metric> aggregation(MetricArguments& arguments, Aggregation kind) {
  NanStrategy strategy;
  const PlainValue* given = arguments.find("nan_strategy");
  if (given != nullptr && given->number()) {
    strategy.kind = NanStrategy::Kind::replace;
    strategy.replacement = static_cast<float>(*given->number());
  } else if (given != nullptr) {
    const size_t which =
        arguments.choice("nan_strategy", {"warn", "ignore", "error", "disable"}, 0);
    strategy.kind = which < 2    ? NanStrategy::Kind::drop
                    : which == 2 ? NanStrategy::Kind::error
                                 : NanStrategy::Kind::disable;
  }
  return make_aggregation(kind, strategy);
}

Made running(MetricArguments& arguments, Aggregation kind) {
  constexpr int64_t widest = 100'000;
  const int64_t window =
      arguments.find("window") == nullptr ? 5 : count_argument(arguments, "window", 1, widest);
  return make_running(aggregation(arguments, kind), window);
}

constexpr auto aggregation_entries = std::to_array<MetricClass>({
    {"MeanMetric", "",
     [](MetricArguments& a) -> Made { return aggregation(a, Aggregation::mean); }},
    {"SumMetric", "", [](MetricArguments& a) -> Made { return aggregation(a, Aggregation::sum); }},
    {"MaxMetric", "", [](MetricArguments& a) -> Made { return aggregation(a, Aggregation::max); }},
    {"MinMetric", "", [](MetricArguments& a) -> Made { return aggregation(a, Aggregation::min); }},
    {"CatMetric", "", [](MetricArguments& a) -> Made { return aggregation(a, Aggregation::cat); }},
    {"RunningMean", "", [](MetricArguments& a) { return running(a, Aggregation::mean); }},
    {"RunningSum", "", [](MetricArguments& a) { return running(a, Aggregation::sum); }},
});

}  // namespace

std::span<const MetricClass> aggregation_classes() { return aggregation_entries; }

}  // namespace lockstep
