#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"
#include "model/metric/error_sums.hpp"

namespace lockstep {

namespace {

using Row = std::vector<float>;

Row normalised(const Row& row) {
  const auto sum = static_cast<float>(std::accumulate(row.begin(), row.end(), 0.0));
  Row result;
  for (const float number : row) {
    result.push_back(number / sum);
  }
  return result;
}

float kullback_leibler(const Row& p, const Row& q) {
  const Row of_p = normalised(p);
  const Row of_q = normalised(q);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    sum += of_p[i] == 0 ? 0 : of_p[i] * std::log(of_p[i] / of_q[i]);
  }
  return static_cast<float>(sum);
}

float kullback_leibler_of_logarithms(const Row& p, const Row& q) {
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    sum += std::exp(p[i]) * (p[i] - q[i]);
  }
  return static_cast<float>(sum);
}

float jensen_shannon(const Row& p, const Row& q) {
  const Row of_p = normalised(p);
  const Row of_q = normalised(q);
  Row mean;
  for (size_t i = 0; i < p.size(); ++i) {
    mean.push_back((of_p[i] + of_q[i]) / 2);
  }
  return 0.5F * kullback_leibler(of_p, mean) + 0.5F * kullback_leibler(of_q, mean);
}

float jensen_shannon_of_logarithms(const Row& p, const Row& q) {
  Row mean;
  for (size_t i = 0; i < p.size(); ++i) {
    const float greatest = std::max(p[i], q[i]);
    const float sum = std::exp(p[i] - greatest) + std::exp(q[i] - greatest);
    mean.push_back(greatest + std::log(sum) - std::log(2.0F));
  }
  return 0.5F * kullback_leibler_of_logarithms(p, mean) +
         0.5F * kullback_leibler_of_logarithms(q, mean);
}

class Divergence final : public Metric {
 public:
  Divergence(DivergenceFormula formula, bool logarithms, DivergenceReduction reduction)
      : Metric({reduction == DivergenceReduction::each
                    ? MetricStateSpec{"measures", StateReduction::cat, true}
                    : MetricStateSpec{"measures", StateReduction::sum, false, scalar(0)},
                {"total", StateReduction::sum, false, scalar(0, DType::int64)}}),
        formula_(formula),
        logarithms_(logarithms),
        reduction_(reduction) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const Tensor& p = *inputs.predictions;
    const Tensor& q = *inputs.target;
    check_equal_shapes(p, q);
    if (p.shape.size() != 2) {
      throw OperationError(
          fmt::format("`preds` has the shape {}: expected [samples, probabilities]",
                      text_of_shape(p.shape)),
          "give one distribution a row");
    }
    const auto width = static_cast<size_t>(p.shape[1]);
    const std::vector<float> of_p = numbers_of<float>(p.values);
    const std::vector<float> of_q = numbers_of<float>(q.values);
    std::vector<float> measures;
    for (size_t begin = 0; width > 0 && begin < of_p.size(); begin += width) {
      const auto row = [&](const std::vector<float>& all) {
        return Row(all.begin() + static_cast<ptrdiff_t>(begin),
                   all.begin() + static_cast<ptrdiff_t>(begin + width));
      };
      measures.push_back(measure(row(of_p), row(of_q)));
    }
    if (reduction_ == DivergenceReduction::each) {
      state[0].push_back(floats({p.shape[0]}, measures));
      return;  // and counts nothing
    }
    add_to(state[0].front(), scalar(std::accumulate(measures.begin(), measures.end(), 0.0)));
    add_to(state[1].front(), scalar(static_cast<double>(p.shape[0]), DType::int64));
  }

  Tensor compute(const MetricState& state) const override {
    if (reduction_ == DivergenceReduction::each) {
      return joined_samples(state[0]);
    }
    const float sum = single(state[0]);
    return scalar(reduction_ == DivergenceReduction::sum ? sum : sum / single(state[1]));
  }

 private:
  float measure(const Row& p, const Row& q) const {
    if (formula_ == DivergenceFormula::kullback_leibler) {
      return logarithms_ ? kullback_leibler_of_logarithms(p, q) : kullback_leibler(p, q);
    }
    return logarithms_ ? jensen_shannon_of_logarithms(p, q) : jensen_shannon(p, q);
  }

  DivergenceFormula formula_;
  bool logarithms_;
  DivergenceReduction reduction_;
};

}  // namespace

std::unique_ptr<const Metric> make_divergence(DivergenceFormula formula, bool logarithms,
                                              DivergenceReduction reduction) {
  return std::make_unique<Divergence>(formula, logarithms, reduction);
}

}  // namespace lockstep
