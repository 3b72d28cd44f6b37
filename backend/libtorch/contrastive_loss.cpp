// NTXentLoss in its two steps (model/network/contrastive_part.hpp), by ATen and its autograd.
#include "model/network/contrastive_part.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "backend/libtorch/layer_kernels.hpp"

namespace lockstep::backend {

namespace {

at::ScalarType accumulator_of(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor leaf(const at::Tensor& tensor, at::ScalarType type, bool wants_gradient) {
  return tensor.detach().to(type).detach().requires_grad_(wants_gradient);
}

/// [2, samples, features], each of length 1.
at::Tensor views_of(const at::Tensor& embeddings, int64_t features) {
  constexpr double least_length = 1e-12;
  const at::Tensor rows = embeddings.view({-1, 2, features}).transpose(0, 1);
  const at::Tensor lengths = at::linalg_vector_norm(rows, 2, {2}, true).clamp_min(least_length);
  return rows / lengths;
}

struct Compared {
  at::Tensor first;
  at::Tensor second;
  at::Tensor first_of_all;
  at::Tensor second_of_all;
};

/// The mean over both views of this rank's samples, of which the first is `first_sample` of all.
at::Tensor loss_of(const Compared& views, double temperature, int64_t first_sample) {
  const int64_t samples = views.first.size(0);
  const int64_t all_samples = views.first_of_all.size(0);
  const at::Tensor labels =
      at::arange(samples, views.first.options().dtype(at::kLong)) + first_sample;
  const at::Tensor columns = at::arange(all_samples, labels.options());
  const at::Tensor is_itself = columns.unsqueeze(0).eq(labels.unsqueeze(1));
  const auto scores = [temperature](const at::Tensor& own, const at::Tensor& all) {
    return own.matmul(all.transpose(0, 1)) / temperature;
  };
  const auto others = [&](const at::Tensor& similar) {
    return similar.masked_fill(is_itself, -std::numeric_limits<double>::infinity());
  };
  const at::Tensor of_first = at::cat(
      {scores(views.first, views.second_of_all), others(scores(views.first, views.first_of_all))},
      1);
  const at::Tensor of_second = at::cat(
      {scores(views.second, views.first_of_all), others(scores(views.second, views.second_of_all))},
      1);
  return at::cross_entropy_loss(at::cat({of_first, of_second}), at::cat({labels, labels}));
}

}  // namespace

void execute_comparison(const Op& op, const Layer& loss, const std::vector<at::Tensor>& reads,
                        TensorOperands& operands) {
  const OpLists& lists = op.list();
  const bool is_backward = op.kernel == Kernel::loss_backward;
  const size_t behind_factor = is_backward ? 1 : 0;
  const int64_t features = loss.input.back();
  const at::AutoGradMode grad_mode(is_backward);
  const at::ScalarType type = accumulator_of(reads[0]);
  if (static_cast<ContrastivePart>(lists.scalars[behind_factor]) == ContrastivePart::views) {
    const at::Tensor embeddings = leaf(reads[0], type, is_backward);
    const at::Tensor views = views_of(embeddings, features);
    if (!is_backward) {
      operands.store(lists.writes[0], views[0].flatten());
      operands.store(lists.writes[1], views[1].flatten());
      return;
    }
    const at::Tensor gradient = at::stack({(reads[1] + reads[3]).to(type).view({-1, features}),
                                           (reads[2] + reads[4]).to(type).view({-1, features})});
    operands.store(lists.writes[0],
                   torch::autograd::grad({views}, {embeddings}, {gradient}).front().flatten());
    return;
  }
  std::vector<at::Tensor> leaves;
  for (size_t i = 0; i < 4; ++i) {
    leaves.push_back(leaf(reads[i], type, is_backward).view({-1, features}));
  }
  if (is_backward) {
    for (at::Tensor& each : leaves) {
      each = each.detach().requires_grad_(true);
    }
  }
  const at::Tensor result = loss_of({leaves[0], leaves[1], leaves[2], leaves[3]},
                                    std::get<LossArguments>(loss.arguments).temperature,
                                    static_cast<int64_t>(lists.scalars[behind_factor + 1]));
  if (!is_backward) {
    operands.store(lists.writes[0], result);
    return;
  }
  const at::Tensor factor = at::full_like(result, lists.scalars[0]);
  const auto gradients = torch::autograd::grad({result}, leaves, {factor});
  for (size_t i = 0; i < 4; ++i) {
    operands.store(lists.writes[i], gradients[i].flatten());
  }
}

}  // namespace lockstep::backend
