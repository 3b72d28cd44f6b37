#pragma once

#include <cstdint>
#include <vector>

#include "model/core/values.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

// Reference arithmetic of the router of a mixture of experts (Shazeer et al. 2017; Fedus et al.
// 2022, "Switch Transformers"; Jiang et al. 2024, "Mixtral of Experts"): the softmax of a Linear
// without bias, in fp32, of which the top_k greatest choose the experts of a token. Of equal ones
// the first counts as greater. A token is a row of the input.

struct ExpertRouting {
  int64_t rows = 0;
  int64_t top_k = 1;
  Values probabilities;         ///< [rows, experts]
  std::vector<int64_t> chosen;  ///< [rows, top_k]
  std::vector<double> weights;  ///< the same, rounded to the type of the activations
  /// By expert, the choices (row * top_k + turn) that it takes: first choices before second ones,
  /// rows in order. What is beyond its capacity is dropped.
  std::vector<std::vector<int64_t>> taken;

  int64_t taken_choices() const;
  /// How many choices fell on each expert, dropped ones too.
  std::vector<int64_t> choices_of_experts() const;
};

/// Choices that one expert takes of `rows` tokens; all of them without a capacity factor:
/// ceil(factor * rows * top_k / experts), as Megatron-LM and DeepSpeed count it.
int64_t expert_capacity(const MixtureArguments& mixture, int64_t rows);

/// `dtype`: of the activations.
ExpertRouting route(const Values& input, const Values& router, const MixtureArguments& mixture,
                    DType dtype);

/// Rows of `input`, expert by expert.
Values dispatched(const Values& input, const ExpertRouting& routing);
/// The reverse for gradients: each row is the sum of what was sent of it.
void add_dispatched(const Values& sent, const ExpertRouting& routing, Values& rows);
/// Each row becomes the weighted sum of what its experts gave, expert by expert.
void combine(const Values& given, const ExpertRouting& routing, Values& output);

/// Gradients of what the experts gave, and of the weights of all choices.
struct CombineGradients {
  Values given;
  std::vector<double> weights;
};
CombineGradients combine_backward(const Values& output_gradient, const Values& given,
                                  const ExpertRouting& routing);

/// The gradient of the router's output [rows, experts]. `aux_factor`: of the load-balancing loss
/// experts * sum over experts of (choices / rows) * (mean probability), as load_balancing_loss_func
/// of transformers has it for one layer; choices count as constants.
Values router_output_gradient(const ExpertRouting& routing, const MixtureArguments& mixture,
                              const std::vector<double>& weight_gradients, double aux_factor,
                              DType dtype);
/// That loss, without its factor.
double load_balancing_loss(const ExpertRouting& routing, const MixtureArguments& mixture);

}  // namespace lockstep
