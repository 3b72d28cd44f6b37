#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "model/expression/evaluation_error.hpp"
#include "model/metric/sample_columns.hpp"
#include "model/metric/variance_scores.hpp"

namespace lockstep {

namespace {

using Row = std::vector<float>;

enum StateIndex : size_t { squared_error, total, least, greatest, mean, variance, norm };

std::vector<MetricStateSpec> normalized_states(int64_t outputs) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto all = [outputs](float number) {
    return floats({outputs}, Row(static_cast<size_t>(outputs), number));
  };
  const auto apart = [](const char* name, const Tensor& initial) {
    return MetricStateSpec{name, StateReduction::none, false, initial};
  };
  return {{"sum_squared_error", StateReduction::sum, false, all(0)},
          apart("total", all(0)),
          apart("min_val", all(infinity)),
          apart("max_val", all(-infinity)),
          apart("mean_val", all(0)),
          apart("var_val", all(0)),
          apart("target_squared", all(0))};
}

/// A state of all ranks as the aggregation reads it: what it has merged takes the place of the
/// whole, so that a later rank is one number of that, or nothing.
class RankRows {
 public:
  RankRows(const StateValue& state, int64_t outputs) : outputs_(static_cast<size_t>(outputs)) {
    const Values& values = state.front().values;
    for (int64_t i = 0; i < values.size(); ++i) {
      if (i % outputs == 0) {
        rows_.emplace_back();
      }
      rows_.back().push_back(static_cast<float>(values.number(i)));
    }
  }
  size_t ranks() const { return rows_.size(); }
  Row& rank(size_t rank) { return rows_[rank]; }
  Row read(size_t rank) const {
    if (!merged_) {
      return rows_[rank];
    }
    if (rank >= outputs_) {
      throw OperationError(
          fmt::format("IndexError: index {} is out of bounds for dimension 0 with size {}: "
                      "TorchMetrics cannot merge the states of {} ranks here",
                      rank, outputs_, rows_.size()),
          "use MeanSquaredError with squared: false, and divide it yourself");
    }
    return Row(outputs_, (*merged_)[rank]);
  }
  void replace(Row row) { merged_ = std::move(row); }
  const Row& merged() const { return *merged_; }

 private:
  size_t outputs_;
  std::vector<Row> rows_;
  std::optional<Row> merged_;
};

template <class Make>
Row each(size_t outputs, Make make) {
  Row row;
  for (size_t i = 0; i < outputs; ++i) {
    row.push_back(make(i));
  }
  return row;
}

// Moves a sum of squared deviations from its own mean to another.
float moved(float sum, float count, float own_mean, float new_mean) {
  const float point = (count + 1) * new_mean - count * own_mean;
  return sum + (point - own_mean) * (point - new_mean) - (point - new_mean) * (point - new_mean);
}

/// nrmse.py, _final_aggregation: every rank is merged with the first, not with all before it.
class Aggregation {
 public:
  Aggregation(const MetricState& state, int64_t outputs)
      : outputs_(static_cast<size_t>(outputs)),
        totals_(state[total], outputs),
        least_(state[least], outputs),
        greatest_(state[greatest], outputs),
        means_(state[mean], outputs),
        variances_(state[variance], outputs),
        norms_(state[norm], outputs) {}

  Row scale(ErrorScale scale) {
    if (means_.ranks() == 1) {
      return of_one(scale);
    }
    const Row first_total = totals_.rank(0);
    Row merged_mean;
    Row merged_variance;
    for (size_t r = 1; r < means_.ranks(); ++r) {
      const Row low = least_.read(r);
      const Row high = greatest_.read(r);
      const Row squares = norms_.read(r);
      const Row count = totals_.read(r);
      const Row first_mean = means_.rank(0);
      const Row own_mean = means_.rank(r);
      const Row both = each(outputs_, [&](size_t i) { return first_total[i] + count[i]; });
      merged_mean = each(outputs_, [&](size_t i) {
        return (first_total[i] * first_mean[i] + count[i] * own_mean[i]) / both[i];
      });
      for (size_t i = 0; i < outputs_; ++i) {
        float& first = variances_.rank(0)[i];
        float& own = variances_.rank(r)[i];
        first = moved(first, first_total[i], first_mean[i], merged_mean[i]);
        own = moved(own, count[i], own_mean[i], merged_mean[i]);
      }
      merged_variance =
          each(outputs_, [&](size_t i) { return variances_.rank(0)[i] + variances_.rank(r)[i]; });
      least_.replace(each(outputs_, [&](size_t i) { return std::min(least_.rank(0)[i], low[i]); }));
      greatest_.replace(
          each(outputs_, [&](size_t i) { return std::max(greatest_.rank(0)[i], high[i]); }));
      norms_.replace(each(outputs_, [&](size_t i) { return norms_.rank(0)[i] + squares[i]; }));
      totals_.replace(both);
    }
    return each(outputs_, [&](size_t i) {
      switch (scale) {
        case ErrorScale::mean: return merged_mean[i];
        case ErrorScale::range: return greatest_.merged()[i] - least_.merged()[i];
        case ErrorScale::deviation: return std::sqrt(merged_variance[i] / totals_.merged()[i]);
        case ErrorScale::norm: return std::sqrt(norms_.merged()[i]);
      }
      return 0.0F;
    });
  }

 private:
  Row of_one(ErrorScale scale) {
    return each(outputs_, [&](size_t i) {
      switch (scale) {
        case ErrorScale::mean: return means_.rank(0)[i];
        case ErrorScale::range: return greatest_.rank(0)[i] - least_.rank(0)[i];
        case ErrorScale::deviation: return std::sqrt(variances_.rank(0)[i] / totals_.rank(0)[i]);
        case ErrorScale::norm: return std::sqrt(norms_.rank(0)[i]);
      }
      return 0.0F;
    });
  }

  size_t outputs_;
  RankRows totals_, least_, greatest_, means_, variances_, norms_;
};

class NormalizedError final : public Metric {
 public:
  NormalizedError(ErrorScale scale, int64_t outputs)
      : Metric(normalized_states(outputs)), scale_(scale), outputs_(outputs) {}

  bool full_state_update() const override { return true; }

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const SampleColumns columns = sample_columns(inputs, outputs_);
    const auto samples = static_cast<float>(columns.samples());
    if (columns.samples() == 0) {
      throw OperationError("`target` is empty");
    }
    for (int64_t output = 0; output < outputs_; ++output) {
      const auto at = [&](size_t which) { return single(state[which], output); };
      const auto set = [&](size_t which, double value) {
        state[which].front().values.set(output, value);
      };
      const std::vector<float>& target = columns.target[static_cast<size_t>(output)];
      const std::vector<float>& given = columns.predictions[static_cast<size_t>(output)];
      double error = 0;
      double squares = 0;
      double sum = 0;
      for (size_t i = 0; i < target.size(); ++i) {
        error += (given[i] - target[i]) * (given[i] - target[i]);
        squares += target[i] * target[i];
        sum += target[i];
      }
      const float old_mean = at(mean);
      const float new_mean =
          (at(total) * old_mean + static_cast<float>(sum)) / (at(total) + samples);
      double deviations = 0;
      for (const float number : target) {
        deviations += (number - new_mean) * (number - old_mean);
      }
      set(squared_error, at(squared_error) + static_cast<float>(error));
      set(least, std::min(at(least), *std::min_element(target.begin(), target.end())));
      set(greatest, std::max(at(greatest), *std::max_element(target.begin(), target.end())));
      set(norm, at(norm) + static_cast<float>(squares));
      set(total, at(total) + samples);
      set(mean, new_mean);
      set(variance, at(variance) + static_cast<float>(deviations));
    }
  }

  Tensor compute(const MetricState& state) const override {
    const Row scale = Aggregation(state, outputs_).scale(scale_);
    std::vector<float> results;
    for (int64_t i = 0; i < outputs_; ++i) {
      float samples = 0;
      for (int64_t at = i; at < state[total].front().values.size(); at += outputs_) {
        samples += single(state[total], at);
      }
      results.push_back(std::sqrt(single(state[squared_error], i) / samples) /
                        scale[static_cast<size_t>(i)]);
    }
    return floats({outputs_}, results);
  }

 private:
  ErrorScale scale_;
  int64_t outputs_;
};

}  // namespace

std::unique_ptr<const Metric> make_normalized_error(ErrorScale scale, int64_t outputs) {
  return std::make_unique<NormalizedError>(scale, outputs);
}

}  // namespace lockstep
