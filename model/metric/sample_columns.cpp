#include "model/metric/sample_columns.hpp"

#include <fmt/format.h>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"

namespace lockstep {

namespace {

std::vector<std::vector<float>> columns_of(const Tensor& tensor) {
  const size_t width = tensor.shape.size() == 2 ? static_cast<size_t>(tensor.shape[1]) : 1;
  const std::vector<float> numbers = numbers_of<float>(tensor.values);
  std::vector<std::vector<float>> columns(width);
  for (size_t i = 0; i < numbers.size(); ++i) {
    columns[i % width].push_back(numbers[i]);
  }
  return columns;
}

}  // namespace

std::vector<int64_t> SampleColumns::shape_of_sum() const {
  return has_outputs ? std::vector{static_cast<int64_t>(target.size())} : std::vector<int64_t>();
}

SampleColumns sample_columns(const MetricInputs& inputs) {
  const Tensor& target = *inputs.target;
  check_equal_shapes(*inputs.predictions, target);
  const bool has_outputs = target.shape.size() == 2;
  if (!has_outputs && target.shape.size() != 1) {
    throw OperationError(
        fmt::format("`target` has the shape {}: expected [samples] or [samples, "
                    "outputs]",
                    text_of_shape(target.shape)));
  }
  if (has_outputs && target.shape[1] == 0) {
    throw OperationError("`target` has no outputs", "give at least one column");
  }
  return {columns_of(*inputs.predictions), columns_of(target), has_outputs};
}

SampleColumns sample_columns(const MetricInputs& inputs, int64_t outputs) {
  SampleColumns columns = sample_columns(inputs);
  const bool fits = static_cast<int64_t>(columns.target.size()) == outputs &&
                    (columns.has_outputs || outputs == 1);
  if (!fits) {
    throw OperationError(
        fmt::format("`target` has the shape {}, and `num_outputs` is {}",
                    text_of_shape(inputs.target->shape), outputs),
        outputs == 1 ? std::string("give [samples], or name the number of columns by `num_outputs`")
                     : fmt::format("give [samples, {}]", outputs));
  }
  return columns;
}

void add_broadcast(Tensor& state, const Tensor& more) {
  if (state.values.size() == 1 && more.values.size() != 1) {
    const double before = state.values.number(0);
    state = zeros(state.values.dtype(), more.shape);
    for (int64_t i = 0; i < state.values.size(); ++i) {
      state.values.set(i, before);
    }
  } else if (state.shape.empty()) {
    state.shape = more.shape;
  }
  if (state.values.size() != more.values.size()) {
    throw OperationError(fmt::format("the metric has counted {} outputs, and the batch has {}",
                                     state.values.size(), more.values.size()),
                         "give batches of equally many outputs");
  }
  add_to(state, more);
}

}  // namespace lockstep
