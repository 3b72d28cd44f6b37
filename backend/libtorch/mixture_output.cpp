#include "backend/libtorch/mixture_output.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

#include "backend/libtorch/tensor_values.hpp"
#include "model/network/arithmetic/expert_routing.hpp"
#include "model/network/execute.hpp"

namespace lockstep::backend {

namespace {

/// Experts as rows choose them: [rows, top_k].
struct Choices {
  at::Tensor probabilities;  ///< of all experts: [rows, experts]
  at::Tensor weights;
  at::Tensor experts;
};

Choices choices_of(const MixtureArguments& mixture, const at::Tensor& rows,
                   const at::Tensor& router) {
  Choices choices;
  const at::Tensor scores = at::linear(rows, router);
  const bool is_double = scores.scalar_type() == at::kDouble;
  choices.probabilities = at::softmax(scores, -1, is_double ? at::kDouble : at::kFloat);
  const auto sorted = at::sort(choices.probabilities, /*stable=*/true, -1, /*descending=*/true);
  at::Tensor weights = std::get<0>(sorted).narrow(1, 0, mixture.top_k);
  if (mixture.renormalized) {
    weights = weights / weights.sum(-1, true);
  }
  choices.weights = weights.to(rows.scalar_type());
  choices.experts = std::get<1>(sorted).narrow(1, 0, mixture.top_k);
  return choices;
}

/// Numbers of choices on each expert.
at::Tensor counted(const at::Tensor& experts, int64_t num_experts) {
  return at::bincount(experts.flatten(), {}, num_experts);
}

at::Tensor expert_output(const MixtureArguments& mixture, const LayerTensors& tensors,
                         int64_t expert, const at::Tensor& rows) {
  const int64_t weights = mixture.weights_per_expert();
  const auto weight = [&](int64_t which) {
    const int64_t at = 1 + (mixture.grouped ? which : expert * weights + which);
    const at::Tensor& all = tensors.parameters.at(static_cast<size_t>(at));
    return mixture.grouped ? all.select(0, expert) : all;
  };
  const at::Tensor hidden = at::linear(rows, weight(0));
  switch (mixture.expert) {
    case ExpertKind::gelu: return at::linear(at::gelu(hidden), weight(1));
    case ExpertKind::relu: return at::linear(at::relu(hidden), weight(1));
    case ExpertKind::swiglu: break;
  }
  return at::linear(at::silu(hidden) * at::linear(rows, weight(2)), weight(1));
}

/// Tensors as numbers of the reference arithmetic.
class NumberOperands final : public Operands {
 public:
  explicit NumberOperands(TensorOperands& tensors) : tensors_(tensors) {}
  Values load(const Slice& from) override {
    const at::Tensor tensor = tensors_.load(from);
    return tensor.defined() ? values_of(tensor.cpu(), from.dtype) : Values();
  }
  void store(const Slice& to, const Values& values) override {
    tensors_.store(to, tensor_of(values));
  }

 private:
  TensorOperands& tensors_;
};

}  // namespace

void execute_by_reference(const Op& op, TensorOperands& operands, const Network& network) {
  NumberOperands numbers(operands);
  execute_kernel(op, numbers, &network);
}

at::Tensor mixture_output(const Layer& layer, const LayerTensors& tensors) {
  const auto& mixture = std::get<MixtureArguments>(layer.arguments);
  const at::Tensor rows = tensors.input.reshape({-1, mixture.embed_dim});
  const Choices choices = choices_of(mixture, rows, tensors.parameters.at(0));
  if (!tensors.buffers.empty()) {
    tensors.buffers.front().add_(counted(choices.experts, mixture.num_experts));
  }
  const int64_t capacity = expert_capacity(mixture, rows.size(0));
  // First choices of all rows before second ones.
  const at::Tensor by_turn = choices.experts.t();
  at::Tensor output = at::zeros_like(rows);
  for (int64_t expert = 0; expert < mixture.num_experts; ++expert) {
    const auto taken = at::where(by_turn == expert);
    const int64_t count = std::min(capacity, taken[0].size(0));
    if (count == 0) {
      continue;
    }
    const at::Tensor turns = taken[0].narrow(0, 0, count);
    const at::Tensor from = taken[1].narrow(0, 0, count);
    const at::Tensor given = expert_output(mixture, tensors, expert, rows.index_select(0, from)) *
                             choices.weights.index({from, turns}).unsqueeze(1);
    output = output.index_add(0, from, given);
  }
  return output.view(tensors.input.sizes());
}

at::Tensor auxiliary_loss(const Layer& layer, const LayerTensors& tensors) {
  const auto* mixture = std::get_if<MixtureArguments>(&layer.arguments);
  if (mixture == nullptr || mixture->aux_loss_coef == 0) {
    return {};
  }
  const at::Tensor rows = tensors.input.reshape({-1, mixture->embed_dim});
  const at::Tensor router = tensors.parameters.at(0);
  const at::ScalarType type = tensors.products_in.value_or(rows.scalar_type());
  const Choices choices = choices_of(*mixture, rows.to(type), router.to(type));
  const at::Tensor shares =
      counted(choices.experts, mixture->num_experts).to(choices.probabilities.scalar_type()) /
      static_cast<double>(rows.size(0));
  return (shares * choices.probabilities.mean(0)).sum() *
         (static_cast<double>(mixture->num_experts) * mixture->aux_loss_coef);
}

}  // namespace lockstep::backend
