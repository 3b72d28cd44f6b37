#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"
#include "model/metric/rank_correlation.hpp"

namespace lockstep {

namespace {

class CosineSimilarity final : public Metric {
 public:
  explicit CosineSimilarity(SimilarityReduction reduction)
      : Metric({{"preds", StateReduction::cat, true}, {"target", StateReduction::cat, true}}),
        reduction_(reduction) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    check_equal_shapes(*inputs.predictions, *inputs.target);
    if (inputs.target->shape.size() != 2) {
      throw OperationError(fmt::format("`target` has the shape {}: expected [samples, dimensions]",
                                       text_of_shape(inputs.target->shape)));
    }
    state[0].push_back(floats(inputs.target->shape, numbers_of<float>(inputs.predictions->values)));
    state[1].push_back(floats(inputs.target->shape, numbers_of<float>(inputs.target->values)));
  }

  Tensor compute(const MetricState& state) const override {
    const Tensor x = joined_samples(state[0]);
    const Tensor y = joined_samples(state[1]);
    const int64_t rows = x.shape.front();
    const int64_t width = rows == 0 ? 0 : x.values.size() / rows;
    std::vector<float> similarities;
    for (int64_t row = 0; row < rows; ++row) {
      double xy = 0;
      double xx = 0;
      double yy = 0;
      for (int64_t i = row * width; i < (row + 1) * width; ++i) {
        xy += x.values.number(i) * y.values.number(i);
        xx += x.values.number(i) * x.values.number(i);
        yy += y.values.number(i) * y.values.number(i);
      }
      similarities.push_back(static_cast<float>(xy / (std::sqrt(xx) * std::sqrt(yy))));
    }
    if (reduction_ == SimilarityReduction::each) {
      return floats({rows}, similarities);
    }
    const double sum = std::accumulate(similarities.begin(), similarities.end(), 0.0);
    return scalar(reduction_ == SimilarityReduction::sum ? sum : sum / static_cast<double>(rows));
  }

 private:
  SimilarityReduction reduction_;
};

std::vector<MetricStateSpec> success_states(bool are_lists) {
  if (are_lists) {
    return {{"hits_list", StateReduction::cat, true},
            {"misses_list", StateReduction::cat, true},
            {"false_alarms_list", StateReduction::cat, true}};
  }
  const Tensor none = scalar(0, DType::int64);
  return {{"hits", StateReduction::sum, false, none},
          {"misses", StateReduction::sum, false, none},
          {"false_alarms", StateReduction::sum, false, none}};
}

class CriticalSuccess final : public Metric {
 public:
  CriticalSuccess(float threshold, std::optional<int64_t> kept)
      : Metric(success_states(kept.has_value())), threshold_(threshold), kept_(kept) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const Tensor& target = *inputs.target;
    check_equal_shapes(*inputs.predictions, target);
    const auto dimensions = static_cast<int64_t>(target.shape.size());
    if (kept_ && *kept_ >= dimensions) {
      throw OperationError(fmt::format("`keep_sequence_dim` is {}, and `target` has {} dimensions",
                                       *kept_, dimensions),
                           "give a dimension of `target`, from 0");
    }
    const int64_t places = kept_ ? target.shape[static_cast<size_t>(*kept_)] : 1;
    int64_t stride = 1;
    for (int64_t d = kept_.value_or(dimensions) + 1; d < dimensions; ++d) {
      stride *= target.shape[static_cast<size_t>(d)];
    }
    const DType dtype = kept_ ? DType::int32 : DType::int64;
    const std::vector<int64_t> shape = kept_ ? std::vector{places} : std::vector<int64_t>();
    std::vector<Tensor> counts(3, zeros(dtype, shape));
    for (int64_t i = 0; i < target.values.size(); ++i) {
      const bool predicted = inputs.predictions->values.number(i) >= threshold_;
      const bool wanted = target.values.number(i) >= threshold_;
      if (predicted || wanted) {
        Values& count = counts[predicted && wanted ? 0 : wanted ? 1 : 2].values;
        const int64_t place = kept_ ? i / stride % places : 0;
        count.set_integer(place, count.integer(place) + 1);
      }
    }
    for (size_t which = 0; which < counts.size(); ++which) {
      if (kept_) {
        state[which].push_back(counts[which]);
      } else {
        add_to(state[which].front(), counts[which]);
      }
    }
  }

  Tensor compute(const MetricState& state) const override {
    std::vector<Tensor> counts;
    for (const StateValue& value : state) {
      counts.push_back(kept_ ? joined_samples(value) : value.front());
    }
    std::vector<float> scores;
    for (int64_t i = 0; i < counts[0].values.size(); ++i) {
      const auto hits = static_cast<float>(counts[0].values.number(i));
      const auto all = hits + static_cast<float>(counts[1].values.number(i)) +
                       static_cast<float>(counts[2].values.number(i));
      scores.push_back(all == 0 ? 0 : hits / all);
    }
    return floats(counts[0].shape, scores);
  }

 private:
  float threshold_;
  std::optional<int64_t> kept_;
};

}  // namespace

std::unique_ptr<const Metric> make_cosine_similarity(SimilarityReduction reduction) {
  return std::make_unique<CosineSimilarity>(reduction);
}

std::unique_ptr<const Metric> make_critical_success(float threshold,
                                                    std::optional<int64_t> kept_dimension) {
  return std::make_unique<CriticalSuccess>(threshold, kept_dimension);
}

}  // namespace lockstep
