#include "model/network/arithmetic/experts.hpp"

#include "model/network/arithmetic/activation.hpp"
#include "model/network/arithmetic/linear.hpp"
#include "model/network/arithmetic/swiglu.hpp"

namespace lockstep {

namespace {

struct ExpertRows {
  int64_t rows = 0;
  int64_t embed = 0;
  int64_t hidden = 0;
};

/// Parameters are defined as w1, w2, w3; SwiGLU takes gate, up, down.
SwigluWeights as_swiglu(const ExpertWeights& w) { return {{w[0], w[2], w[1]}, {}}; }
SwigluGradients as_swiglu(const ExpertGradients& w) { return {{w[0], w[2], w[1]}, {}}; }

void activate(const Values& input, ExpertKind kind, Values& output) {
  if (kind == ExpertKind::relu) {
    relu_forward(input, output);
  } else {
    gelu_forward(input, GeluForm::exact, output);
  }
}

void plain_expert_forward(const Values& input, const ExpertWeights& w, ExpertKind kind,
                          const ExpertRows& shape, Values& output) {
  Values hidden(output.dtype(), shape.rows * shape.hidden);
  Values active(output.dtype(), hidden.size());
  linear_forward(input, *w[0], nullptr, shape.rows, shape.embed, shape.hidden, hidden);
  activate(hidden, kind, active);
  linear_forward(active, *w[1], nullptr, shape.rows, shape.hidden, shape.embed, output);
}

void plain_expert_backward(const Values& input, const ExpertWeights& w, const Values& gradient,
                           ExpertKind kind, const ExpertRows& shape, Values& input_gradient,
                           const ExpertGradients& gradients) {
  Values hidden(gradient.dtype(), shape.rows * shape.hidden);
  Values active(gradient.dtype(), hidden.size());
  Values active_gradient(gradient.dtype(), hidden.size());
  Values hidden_gradient(gradient.dtype(), hidden.size());
  linear_forward(input, *w[0], nullptr, shape.rows, shape.embed, shape.hidden, hidden);
  activate(hidden, kind, active);
  if (gradients[1] != nullptr) {
    linear_weight_gradient(active, gradient, shape.rows, shape.hidden, shape.embed, *gradients[1]);
  }
  linear_input_gradient(gradient, *w[1], shape.rows, shape.hidden, shape.embed, active_gradient);
  if (kind == ExpertKind::relu) {
    relu_backward(active, active_gradient, hidden_gradient);
  } else {
    gelu_backward(hidden, active_gradient, GeluForm::exact, hidden_gradient);
  }
  if (gradients[0] != nullptr) {
    linear_weight_gradient(input, hidden_gradient, shape.rows, shape.embed, shape.hidden,
                           *gradients[0]);
  }
  linear_input_gradient(hidden_gradient, *w[0], shape.rows, shape.embed, shape.hidden,
                        input_gradient);
}

}  // namespace

void experts_forward(const Values& input, std::span<const ExpertWeights> weights,
                     std::span<const int64_t> rows_of, const MixtureArguments& mixture,
                     Values& output) {
  int64_t first = 0;
  for (size_t expert = 0; expert < weights.size(); ++expert) {
    const ExpertRows shape{rows_of[expert], mixture.embed_dim, mixture.own_hidden_dim()};
    if (shape.rows == 0) {
      continue;
    }
    const Values rows = input.slice(first * shape.embed, shape.rows * shape.embed);
    Values given(output.dtype(), rows.size());
    if (mixture.expert == ExpertKind::swiglu) {
      swiglu_forward(rows, as_swiglu(weights[expert]), {shape.rows, shape.embed, shape.hidden},
                     given);
    } else {
      plain_expert_forward(rows, weights[expert], mixture.expert, shape, given);
    }
    output.assign(first * shape.embed, given);
    first += shape.rows;
  }
}

void experts_backward(const Values& input, std::span<const ExpertWeights> weights,
                      std::span<const int64_t> rows_of, const Values& output_gradient,
                      const MixtureArguments& mixture, Values& input_gradient,
                      std::span<const ExpertGradients> gradients) {
  int64_t first = 0;
  for (size_t expert = 0; expert < weights.size(); ++expert) {
    const ExpertRows shape{rows_of[expert], mixture.embed_dim, mixture.own_hidden_dim()};
    if (shape.rows == 0) {
      continue;
    }
    const int64_t begin = first * shape.embed;
    const Values rows = input.slice(begin, shape.rows * shape.embed);
    const Values gradient = output_gradient.slice(begin, rows.size());
    Values of_rows(input_gradient.dtype(), rows.size());
    if (mixture.expert == ExpertKind::swiglu) {
      swiglu_backward(rows, as_swiglu(weights[expert]), gradient,
                      {shape.rows, shape.embed, shape.hidden}, &of_rows,
                      as_swiglu(gradients[expert]));
    } else {
      plain_expert_backward(rows, weights[expert], gradient, mixture.expert, shape, of_rows,
                            gradients[expert]);
    }
    input_gradient.assign(begin, of_rows);
    first += shape.rows;
  }
}

}  // namespace lockstep
