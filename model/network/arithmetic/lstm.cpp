#include "model/network/arithmetic/lstm.hpp"

#include <cmath>

#include "model/network/arithmetic/numbers.hpp"
#include "model/network/arithmetic/vectors.hpp"

namespace lockstep {

namespace {

/// One layer's numbers, and what its forward leaves for every position of every sample: the four
/// gates, the cell and the output.
template <class T>
struct Recurrence {
  Recurrence(const Values& values, const LstmWeights& weights, const LstmShape& sizes)
      : shape(sizes),
        input(numbers_of<T>(values)),
        input_weight(numbers_of<T>(*weights.input)),
        state_weight(numbers_of<T>(*weights.state)),
        bias(static_cast<size_t>(sizes.gates())) {
    for (const Values* given : {weights.input_bias, weights.state_bias}) {
      for (int64_t i = 0; given != nullptr && i < given->size(); ++i) {
        bias[static_cast<size_t>(i)] += static_cast<T>(given->number(i));
      }
    }
    const auto rows = static_cast<size_t>(sizes.batch * sizes.positions * sizes.hidden);
    gates.resize(4 * rows);
    cells.resize(rows);
    outputs.resize(rows);
    ensure(std::ssize(input) == sizes.batch * sizes.positions * sizes.inputs,
           "an LSTM's operands fit");
  }

  /// Row of a position; the state before the first one is of zeros.
  int64_t row(int64_t sample, int64_t position) const {
    return sample * shape.positions + position;
  }
  size_t state_at(int64_t row) const { return static_cast<size_t>(row * shape.hidden); }
  size_t gate_at(int64_t row, int64_t gate) const {
    return static_cast<size_t>(row * shape.gates() + gate * shape.hidden);
  }
  size_t input_at(int64_t row) const { return static_cast<size_t>(row * shape.inputs); }

  static T sigmoid(T x) { return T{1} / (T{1} + std::exp(-x)); }

  void step(int64_t sample, int64_t position) {
    const int64_t here = row(sample, position);
    for (int64_t i = 0; i < shape.gates(); ++i) {
      T sum =
          bias[static_cast<size_t>(i)] + dot(input_weight, static_cast<size_t>(i * shape.inputs),
                                             input, input_at(here), shape.inputs);
      if (position > 0) {
        sum += dot(state_weight, static_cast<size_t>(i * shape.hidden), outputs, state_at(here - 1),
                   shape.hidden);
      }
      const bool is_cell_gate = i / shape.hidden == 2;
      gates[gate_at(here, 0) + static_cast<size_t>(i)] =
          is_cell_gate ? std::tanh(sum) : sigmoid(sum);
    }
    for (size_t i = 0; i < static_cast<size_t>(shape.hidden); ++i) {
      const T before = position > 0 ? cells[state_at(here - 1) + i] : T{0};
      const T cell = gates[gate_at(here, 1) + i] * before +
                     gates[gate_at(here, 0) + i] * gates[gate_at(here, 2) + i];
      cells[state_at(here) + i] = cell;
      outputs[state_at(here) + i] = gates[gate_at(here, 3) + i] * std::tanh(cell);
    }
  }

  void run() {
    for (int64_t sample = 0; sample < shape.batch; ++sample) {
      for (int64_t position = 0; position < shape.positions; ++position) {
        step(sample, position);
      }
    }
  }

  LstmShape shape;
  std::vector<T> input;
  std::vector<T> input_weight;
  std::vector<T> state_weight;
  std::vector<T> bias;
  std::vector<T> gates;
  std::vector<T> cells;
  std::vector<T> outputs;
};

/// Walks one sample's positions backward.
template <class T>
class BackwardThroughTime {
 public:
  BackwardThroughTime(const Recurrence<T>& forward, std::vector<T> output_gradient)
      : forward_(forward),
        output_gradient_(std::move(output_gradient)),
        input_gradient(forward.input.size()),
        input_weight(forward.input_weight.size()),
        state_weight(forward.state_weight.size()),
        bias(forward.bias.size()) {}

  void run() {
    const LstmShape& shape = forward_.shape;
    for (int64_t sample = 0; sample < shape.batch; ++sample) {
      state_.assign(static_cast<size_t>(shape.hidden), T{0});
      cell_.assign(static_cast<size_t>(shape.hidden), T{0});
      for (int64_t position = shape.positions; position-- > 0;) {
        through_cell(forward_.row(sample, position), position);
        through_products(forward_.row(sample, position), position);
      }
    }
  }

 private:
  /// From the gradients of output and cell to those of the sums behind the four gates, and of the
  /// cell before.
  void through_cell(int64_t here, int64_t position) {
    const auto hidden = static_cast<size_t>(forward_.shape.hidden);
    sums_.assign(4 * hidden, T{0});
    const auto gate = [&](int64_t which, size_t i) {
      return forward_.gates[forward_.gate_at(here, which) + i];
    };
    for (size_t i = 0; i < hidden; ++i) {
      const T dh = output_gradient_[forward_.state_at(here) + i] + state_[i];
      const T bend = std::tanh(forward_.cells[forward_.state_at(here) + i]);
      const T before = position > 0 ? forward_.cells[forward_.state_at(here - 1) + i] : T{0};
      const T dc = cell_[i] + dh * gate(3, i) * (T{1} - bend * bend);
      sums_[i] = dc * gate(2, i) * gate(0, i) * (T{1} - gate(0, i));
      sums_[hidden + i] = dc * before * gate(1, i) * (T{1} - gate(1, i));
      sums_[2 * hidden + i] = dc * gate(0, i) * (T{1} - gate(2, i) * gate(2, i));
      sums_[3 * hidden + i] = dh * bend * gate(3, i) * (T{1} - gate(3, i));
      cell_[i] = dc * gate(1, i);
    }
  }

  void through_products(int64_t here, int64_t position) {
    const LstmShape& shape = forward_.shape;
    state_.assign(static_cast<size_t>(shape.hidden), T{0});
    for (int64_t i = 0; i < shape.gates(); ++i) {
      const T sum = sums_[static_cast<size_t>(i)];
      const auto of_input = static_cast<size_t>(i * shape.inputs);
      const auto of_state = static_cast<size_t>(i * shape.hidden);
      bias[static_cast<size_t>(i)] += sum;
      add_multiple(sum, forward_.input, forward_.input_at(here), input_weight, of_input,
                   shape.inputs);
      add_multiple(sum, forward_.input_weight, of_input, input_gradient, forward_.input_at(here),
                   shape.inputs);
      if (position > 0) {
        add_multiple(sum, forward_.outputs, forward_.state_at(here - 1), state_weight, of_state,
                     shape.hidden);
        add_multiple(sum, forward_.state_weight, of_state, state_, 0, shape.hidden);
      }
    }
  }

  const Recurrence<T>& forward_;
  std::vector<T> output_gradient_;
  std::vector<T> state_;  ///< gradient of the state that the next position has read
  std::vector<T> cell_;
  std::vector<T> sums_;

 public:
  std::vector<T> input_gradient;
  std::vector<T> input_weight;
  std::vector<T> state_weight;
  std::vector<T> bias;
};

}  // namespace

void lstm_forward(const Values& input, const LstmWeights& weights, const LstmShape& shape,
                  Values& output) {
  with_accumulator({&input, weights.input, weights.state, &output}, [&]<class T>(T) {
    Recurrence<T> forward(input, weights, shape);
    forward.run();
    store_numbers(forward.outputs, output);
  });
}

void lstm_backward(const Values& input, const LstmWeights& weights, const Values& output_gradient,
                   const LstmShape& shape, Values* input_gradient, const LstmGradients& gradients) {
  with_accumulator({&input, weights.input, weights.state, &output_gradient}, [&]<class T>(T) {
    Recurrence<T> forward(input, weights, shape);
    forward.run();
    BackwardThroughTime<T> backward(forward, numbers_of<T>(output_gradient));
    backward.run();
    const auto add = [](const std::vector<T>& numbers, Values* to) {
      if (to != nullptr) {
        accumulate_numbers(numbers, *to);
      }
    };
    add(backward.input_weight, gradients.input);
    add(backward.state_weight, gradients.state);
    add(backward.bias, gradients.input_bias);
    add(backward.bias, gradients.state_bias);
    if (input_gradient != nullptr) {
      store_numbers(backward.input_gradient, *input_gradient);
    }
  });
}

}  // namespace lockstep
