#include "model/metric/aggregation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"

namespace lockstep {

namespace {

std::vector<MetricStateSpec> aggregation_states(Aggregation aggregation) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (aggregation) {
    case Aggregation::mean:
      return {{"mean_value", StateReduction::sum, false, scalar(0)},
              {"weight", StateReduction::sum, false, scalar(0)}};
    case Aggregation::sum: return {{"sum_value", StateReduction::sum, false, scalar(0)}};
    case Aggregation::max: return {{"max_value", StateReduction::max, false, scalar(-infinity)}};
    case Aggregation::min: return {{"min_value", StateReduction::min, false, scalar(infinity)}};
    case Aggregation::cat: return {{"value", StateReduction::cat, true}};
  }
  return {};
}

class Aggregator final : public Metric {
 public:
  Aggregator(Aggregation aggregation, const NanStrategy& nan)
      : Metric(aggregation_states(aggregation)), aggregation_(aggregation), nan_(nan) {}

  MetricInputKind input_kind() const override { return MetricInputKind::value; }
  bool full_state_update() const override {
    return aggregation_ == Aggregation::max || aggregation_ == Aggregation::min;
  }

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const Kept kept = kept_of(inputs);
    if (kept.values.empty()) {
      return;
    }
    if (aggregation_ == Aggregation::cat) {
      const auto size = static_cast<int64_t>(kept.values.size());
      state.front().push_back(
          floats(kept.all ? inputs.predictions->shape : std::vector{size}, kept.values));
      return;
    }
    Tensor& first = state.front().front();
    double weighted = 0;
    double weights = 0;
    for (size_t i = 0; i < kept.values.size(); ++i) {
      const double factor = aggregation_ == Aggregation::mean ? kept.weights[i] : 1.0F;
      weighted += static_cast<float>(kept.values[i] * factor);
      weights += kept.weights[i];
    }
    switch (aggregation_) {
      case Aggregation::mean: add_to(state[1].front(), scalar(weights)); [[fallthrough]];
      case Aggregation::sum: add_to(first, scalar(weighted)); break;
      case Aggregation::max:
        first.values.set(
            0, std::max(first.values.number(0),
                        double{*std::max_element(kept.values.begin(), kept.values.end())}));
        break;
      case Aggregation::min:
        first.values.set(
            0, std::min(first.values.number(0),
                        double{*std::min_element(kept.values.begin(), kept.values.end())}));
        break;
      case Aggregation::cat: break;
    }
  }

  Tensor compute(const MetricState& state) const override {
    if (aggregation_ == Aggregation::cat) {
      return joined(state.front());
    }
    const float first = static_cast<float>(state[0].front().values.number(0));
    return aggregation_ == Aggregation::mean
               ? scalar(first / static_cast<float>(state[1].front().values.number(0)))
               : state[0].front();
  }

 private:
  struct Kept {
    std::vector<float> values;
    std::vector<float> weights;
    bool all = true;
  };

  // Without the nans, or with what replaces them.
  Kept kept_of(const MetricInputs& inputs) const {
    const std::vector<float> values = numbers_of<float>(inputs.predictions->values);
    const std::vector<float> weights =
        inputs.weight == nullptr ? std::vector<float>{1} : numbers_of<float>(inputs.weight->values);
    if (weights.size() != 1 && weights.size() != values.size()) {
      throw OperationError(fmt::format("{} weights for {} values", weights.size(), values.size()));
    }
    Kept kept;
    kept.values.reserve(values.size());
    kept.weights.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      float value = values[i];
      float weight = weights[weights.size() == 1 ? 0 : i];
      if (std::isnan(value) || std::isnan(weight)) {
        if (nan_.kind == NanStrategy::Kind::error) {
          throw OperationError("the value holds nan", "nan_strategy: ignore drops them");
        }
        if (nan_.kind == NanStrategy::Kind::drop) {
          kept.all = false;
          continue;
        }
        if (nan_.kind == NanStrategy::Kind::replace) {
          value = nan_.replacement;
          weight = 1;
        }
      }
      kept.values.push_back(value);
      kept.weights.push_back(weight);
    }
    return kept;
  }

  Aggregation aggregation_;
  NanStrategy nan_;
};

}  // namespace

std::unique_ptr<const Metric> make_aggregation(Aggregation aggregation, const NanStrategy& nan) {
  return std::make_unique<Aggregator>(aggregation, nan);
}

}  // namespace lockstep
