#include "model/metric/metric.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/expression/evaluation_error.hpp"
#include "model/expression/tensor.hpp"

namespace lockstep {

std::string_view name_of(StateReduction reduction) {
  switch (reduction) {
    case StateReduction::sum: return "sum";
    case StateReduction::mean: return "mean";
    case StateReduction::max: return "max";
    case StateReduction::min: return "min";
    case StateReduction::cat: return "cat";
    case StateReduction::none: return "none";
  }
  return "";
}

MetricState Metric::initial_state() const {
  MetricState state;
  for (const MetricStateSpec& spec : states_) {
    state.push_back(spec.is_list ? StateValue{} : StateValue{spec.initial});
  }
  return state;
}

Tensor MetricOfSeveral::compute(const MetricState&) const {
  ensure(false, "the value of this metric is a list");
  return {};
}

float single(const StateValue& state, int64_t index) {
  return static_cast<float>(state.front().values.number(index));
}

Tensor zeros(DType dtype, std::vector<int64_t> shape) {
  const int64_t elements = element_count(shape);
  return {std::move(shape), Values(dtype, elements)};
}

Tensor scalar(double value, DType dtype) { return {{}, Values::of(dtype, {value})}; }

Tensor floats(std::vector<int64_t> shape, const std::vector<float>& numbers) {
  Tensor tensor = zeros(DType::fp32, std::move(shape));
  ensure(tensor.values.size() == static_cast<int64_t>(numbers.size()), "a shape holds its numbers");
  for (size_t i = 0; i < numbers.size(); ++i) {
    tensor.values.set(static_cast<int64_t>(i), numbers[i]);
  }
  return tensor;
}

void add_to(Tensor& state, const Tensor& more) {
  ensure(state.values.size() == more.values.size(), "states have the same size");
  for (int64_t i = 0; i < state.values.size(); ++i) {
    if (is_floating(state.values.dtype())) {
      state.values.set(i, state.values.number(i) + more.values.number(i));
    } else {
      state.values.set_integer(i, state.values.integer(i) + more.values.integer(i));
    }
  }
}

void check_equal_shapes(const Tensor& predictions, const Tensor& target) {
  if (predictions.shape != target.shape) {
    throw OperationError(fmt::format("`preds` has the shape {} and `target` {}",
                                     text_of_shape(predictions.shape), text_of_shape(target.shape)),
                         "give both the same shape");
  }
}

Tensor joined(const StateValue& list) {
  if (list.empty()) {
    return zeros(DType::fp32, {0});
  }
  return list.size() == 1 && !list.front().shape.empty() ? list.front() : concat(list);
}

Tensor joined_samples(const StateValue& list) {
  if (list.empty()) {
    throw OperationError("the metric has seen no samples: there is nothing to concatenate",
                         "call update before compute");
  }
  return joined(list);
}

StateValue to_exchange(const MetricStateSpec& spec, const StateValue& state, EmptyList empty) {
  const bool joins = spec.is_list && spec.reduction == StateReduction::cat;
  if (joins && state.empty() && empty == EmptyList::nothing) {
    return {};
  }
  // One entry goes as it is, also one of shape [].
  return joins && state.size() != 1 ? StateValue{joined(state)} : state;
}

namespace {

Tensor stacked_ranks(const std::vector<Tensor>& parts) {
  std::vector<Tensor> rows = parts;
  for (Tensor& row : rows) {
    row.shape.insert(row.shape.begin(), 1);
  }
  return concat(rows);
}

double better(StateReduction reduction, double a, double b) {
  return reduction == StateReduction::max ? std::max(a, b) : std::min(a, b);
}

// Element by element over the ranks, taken in fp64 and rounded once; whole numbers stay exact.
Tensor over_ranks(StateReduction reduction, const std::vector<Tensor>& parts) {
  Tensor result = parts.front();
  const bool whole = !is_floating(result.values.dtype());
  for (int64_t i = 0; i < result.values.size(); ++i) {
    if (whole && reduction == StateReduction::sum) {
      int64_t total = 0;
      for (const Tensor& part : parts) {
        total += part.values.integer(i);
      }
      result.values.set_integer(i, total);
      continue;
    }
    double value = reduction == StateReduction::sum || reduction == StateReduction::mean
                       ? 0
                       : parts.front().values.number(i);
    for (const Tensor& part : parts) {
      const double own = part.values.number(i);
      value = reduction == StateReduction::sum || reduction == StateReduction::mean
                  ? value + own
                  : better(reduction, value, own);
    }
    result.values.set(
        i, reduction == StateReduction::mean ? value / static_cast<double>(parts.size()) : value);
  }
  return result;
}

}  // namespace

StateValue merged(const MetricStateSpec& spec, const std::vector<std::vector<Tensor>>& gathered) {
  StateValue all;
  for (const std::vector<Tensor>& of_ranks : gathered) {
    all.insert(all.end(), of_ranks.begin(), of_ranks.end());
  }
  if (spec.is_list) {
    return spec.reduction == StateReduction::cat && !all.empty() ? StateValue{joined(all)} : all;
  }
  for (const Tensor& part : all) {
    if (part.shape != all.front().shape) {
      throw OperationError(
          fmt::format("the state `{}` has different shapes on two ranks: {} and "
                      "{} cannot be stacked",
                      spec.name, text_of_shape(all.front().shape), text_of_shape(part.shape)));
    }
  }
  return {spec.reduction == StateReduction::none || spec.reduction == StateReduction::cat
              ? stacked_ranks(all)
              : over_ranks(spec.reduction, all)};
}

MetricState merged(const Metric& metric, const std::vector<MetricState>& ranks) {
  MetricState result;
  std::vector<MetricState> sent;
  for (const MetricState& rank : ranks) {
    sent.push_back(metric.exchanged(rank));
  }
  for (size_t i = 0; i < metric.exchanged_states().size(); ++i) {
    const MetricStateSpec& spec = metric.exchanged_states()[i];
    std::vector<std::vector<Tensor>> gathered;
    for (const MetricState& rank : sent) {
      const StateValue parts = to_exchange(spec, rank[i]);
      gathered.resize(std::max(gathered.size(), parts.size()));
      for (size_t k = 0; k < parts.size(); ++k) {
        gathered[k].push_back(parts[k]);
      }
    }
    result.push_back(merged(spec, gathered));
  }
  return result;
}

void merge_batch(const Metric& metric, MetricState before, int64_t updates, MetricState& batch) {
  for (size_t i = 0; i < batch.size(); ++i) {
    const MetricStateSpec& spec = metric.states()[i];
    StateValue& value = batch[i];
    if (spec.is_list) {
      std::move(value.begin(), value.end(), std::back_inserter(before[i]));
      value = std::move(before[i]);
      continue;
    }
    const std::vector<Tensor> both = {before[i].front(), value.front()};
    if (spec.reduction == StateReduction::mean) {
      Values& values = value.front().values;
      for (int64_t k = 0; k < values.size(); ++k) {
        const double earlier = before[i].front().values.number(k);
        values.set(k, (static_cast<double>(updates - 1) * earlier + values.number(k)) /
                          static_cast<double>(updates));
      }
    } else {
      value = merged(spec, {both});
    }
  }
}

}  // namespace lockstep
