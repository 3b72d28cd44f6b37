#include "model/metric/rank_correlation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"
#include "model/metric/sample_columns.hpp"

namespace lockstep {

namespace {

using Column = std::vector<float>;

std::vector<MetricStateSpec> sample_lists() {
  return {{"preds", StateReduction::cat, true}, {"target", StateReduction::cat, true}};
}

SampleColumns samples_of(const MetricState& state) {
  const Tensor predictions = joined_samples(state[0]);
  const Tensor target = joined_samples(state[1]);
  return sample_columns({&predictions, &target});
}

std::vector<size_t> order_of(const Column& column) {
  std::vector<size_t> order(column.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return column[a] < column[b]; });
  return order;
}

// From 1; equal numbers share the mean of their ranks.
std::vector<double> mean_ranks(const Column& column) {
  const std::vector<size_t> order = order_of(column);
  std::vector<double> ranks(column.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && column[order[end]] == column[order[begin]]) {
      ++end;
    }
    for (size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(begin + 1 + end) / 2;
    }
    begin = end;
  }
  return ranks;
}

float correlation_of_ranks(const Column& x, const Column& y) {
  const std::vector<double> of_x = mean_ranks(x);
  const std::vector<double> of_y = mean_ranks(y);
  const auto count = static_cast<double>(x.size());
  const double middle = (count + 1) / 2;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (of_x[i] - middle) * (of_x[i] - middle);
    yy += (of_y[i] - middle) * (of_y[i] - middle);
    xy += (of_x[i] - middle) * (of_y[i] - middle);
  }
  constexpr double keeps_from_zero = 1e-6;
  const double result =
      (xy / count) / (std::sqrt(xx / count) * std::sqrt(yy / count) + keeps_from_zero);
  return static_cast<float>(std::clamp(result, -1.0, 1.0));
}

class Spearman final : public Metric {
 public:
  explicit Spearman(int64_t outputs) : Metric(sample_lists()), outputs_(outputs) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    if (!is_floating(inputs.predictions->values.dtype()) ||
        !is_floating(inputs.target->values.dtype())) {
      throw OperationError("`preds` and `target` are floats, and one of them is not",
                           "write float(..)");
    }
    sample_columns(inputs, outputs_);
    state[0].push_back(*inputs.predictions);
    state[1].push_back(*inputs.target);
  }

  Tensor compute(const MetricState& state) const override {
    const SampleColumns columns = samples_of(state);
    std::vector<float> results;
    for (size_t i = 0; i < columns.target.size(); ++i) {
      results.push_back(correlation_of_ranks(columns.predictions[i], columns.target[i]));
    }
    return floats(columns.shape_of_sum(), results);
  }

 private:
  int64_t outputs_;
};

/// How often a number up to some place has come (Fenwick 1994).
class CountsBelow {
 public:
  explicit CountsBelow(size_t places) : sums_(places + 1) {}
  void add(size_t place) {
    for (size_t i = place + 1; i < sums_.size(); i += i & (~i + 1)) {
      ++sums_[i];
    }
  }
  int64_t below(size_t place) const {
    int64_t sum = 0;
    for (size_t i = place; i > 0; i -= i & (~i + 1)) {
      sum += sums_[i];
    }
    return sum;
  }

 private:
  std::vector<int64_t> sums_;
};

// 0, 1, .. by size; equal numbers alike.
std::vector<size_t> dense_ranks(const Column& column) {
  const std::vector<size_t> order = order_of(column);
  std::vector<size_t> ranks(column.size());
  for (size_t i = 1; i < order.size(); ++i) {
    ranks[order[i]] = ranks[order[i - 1]] + (column[order[i]] != column[order[i - 1]] ? 1 : 0);
  }
  return ranks;
}

struct Pairs {
  int64_t concordant = 0;
  int64_t discordant = 0;
};

Pairs pairs_of(const Column& x, const Column& y) {
  const std::vector<size_t> order = order_of(x);
  const std::vector<size_t> ranks = dense_ranks(y);
  CountsBelow seen(y.size());
  Pairs pairs;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    for (; end < order.size() && x[order[end]] == x[order[begin]]; ++end) {
      const size_t rank = ranks[order[end]];
      pairs.concordant += seen.below(rank);
      pairs.discordant += static_cast<int64_t>(begin) - seen.below(rank + 1);
    }
    for (size_t i = begin; i < end; ++i) {
      seen.add(ranks[order[i]]);
    }
    begin = end;
  }
  return pairs;
}

/// What ties take from the pairs, and from the variance of their balance (Kendall 1945).
struct Ties {
  double pairs = 0;
  double first = 0;
  double second = 0;
  int64_t distinct = 0;
};

Ties ties_of(const Column& column) {
  std::vector<int64_t> counts(column.size());
  for (const size_t rank : dense_ranks(column)) {
    ++counts[rank];
  }
  Ties ties;
  for (const int64_t count : counts) {
    const auto n = static_cast<double>(count);
    ties.distinct += count > 0 ? 1 : 0;
    if (count > 1) {
      ties.pairs += n * (n - 1) / 2;
      ties.first += n * (n - 1) * (n - 2);
      ties.second += n * (n - 1) * (2 * n + 5);
    }
  }
  return ties;
}

class Kendall final : public Metric {
 public:
  Kendall(KendallVariant variant, std::optional<TestAlternative> test, int64_t outputs)
      : Metric(sample_lists()), variant_(variant), test_(test), outputs_(outputs) {}

  bool full_state_update() const override { return true; }

  // Of one output the lists hold columns: [samples, 1].
  void update(const MetricInputs& inputs, MetricState& state) const override {
    sample_columns(inputs, outputs_);
    for (size_t which = 0; which < 2; ++which) {
      Tensor kept = which == 0 ? *inputs.predictions : *inputs.target;
      if (kept.shape.size() == 1) {
        kept.shape.push_back(1);
      }
      state[which].push_back(std::move(kept));
    }
  }

  Tensor compute(const MetricState& state) const override {
    return of_columns(state, [this](const Column& x, const Column& y) { return tau(x, y); });
  }

  Value value(const MetricState& state) const override {
    if (!test_) {
      return Value(compute(state));
    }
    const auto test = [this](const Column& x, const Column& y) { return p_value(x, y); };
    return Value(List{Value(compute(state)), Value(of_columns(state, test))});
  }

 private:
  template <class Of>
  Tensor of_columns(const MetricState& state, Of of) const {
    const SampleColumns columns = samples_of(state);
    std::vector<float> results;
    for (size_t i = 0; i < columns.target.size(); ++i) {
      results.push_back(static_cast<float>(of(columns.predictions[i], columns.target[i])));
    }
    return outputs_ == 1 ? scalar(results.front()) : floats({outputs_}, results);
  }

  double tau(const Column& x, const Column& y) const {
    const Pairs pairs = pairs_of(x, y);
    const auto balance = static_cast<double>(pairs.concordant - pairs.discordant);
    const auto count = static_cast<double>(x.size());
    double result = 0;
    if (variant_ == KendallVariant::a) {
      result = balance / static_cast<double>(pairs.concordant + pairs.discordant);
    } else if (variant_ == KendallVariant::b) {
      const double all = count * (count - 1) / 2;
      result = balance / std::sqrt((all - ties_of(x).pairs) * (all - ties_of(y).pairs));
    } else {
      const auto classes = static_cast<double>(std::min(ties_of(x).distinct, ties_of(y).distinct));
      result = 2 * balance / ((classes - 1) / classes * count * count);
    }
    return std::isnan(result) ? result : std::clamp(result, -1.0, 1.0);
  }

  double p_value(const Column& x, const Column& y) const {
    const Pairs pairs = pairs_of(x, y);
    const auto balance = static_cast<double>(pairs.concordant - pairs.discordant);
    const auto n = static_cast<double>(x.size());
    const double base = n * (n - 1) * (2 * n + 5);
    double t = 0;
    if (variant_ == KendallVariant::a) {
      t = 3 * balance / std::sqrt(base / 2);
    } else {
      const Ties of_x = ties_of(x);
      const Ties of_y = ties_of(y);
      const double all = n * (n - 1);
      t = balance /
          std::sqrt((base - of_x.second - of_y.second) / 18 + 2 * of_x.pairs * of_y.pairs / all +
                    of_x.first * of_y.first / (9 * all * (n - 2)));
    }
    if (test_ == TestAlternative::two_sided) {
      t = std::abs(t);
    }
    if (test_ != TestAlternative::less) {
      t = -t;
    }
    const double below = 0.5 * std::erfc(-t / std::sqrt(2.0));
    return test_ == TestAlternative::two_sided ? 2 * below : below;
  }

  KendallVariant variant_;
  std::optional<TestAlternative> test_;
  int64_t outputs_;
};

}  // namespace

std::unique_ptr<const Metric> make_spearman(int64_t outputs) {
  return std::make_unique<Spearman>(outputs);
}

std::unique_ptr<const Metric> make_kendall(KendallVariant variant,
                                           std::optional<TestAlternative> test, int64_t outputs) {
  return std::make_unique<Kendall>(variant, test, outputs);
}

}  // namespace lockstep
