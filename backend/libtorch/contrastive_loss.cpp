// Losses that compare samples, in their two steps (model/network/contrastive_part.hpp), by ATen and
// its autograd.
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
  return tensor.detach().to(type).requires_grad_(wants_gradient);
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

/// A loss of this rank's samples, of which the first is `first_sample` of all.
class ComparisonOf {
 public:
  ComparisonOf(const Layer& loss, const Compared& views, int64_t first_sample)
      : kind_(loss.kind),
        arguments_(std::get<LossArguments>(loss.arguments)),
        views_(views),
        own_(at::arange(views.first.size(0), views.first.options().dtype(at::kLong)) +
             first_sample),
        is_own_(at::arange(views.first_of_all.size(0), own_.options())
                    .unsqueeze(0)
                    .eq(own_.unsqueeze(1))) {}

  /// `labels`: of SupConLoss.
  at::Tensor value(const at::Tensor& labels) const {
    const at::Tensor forth = scores(views_.first, views_.second_of_all);
    switch (kind_) {
      case LayerKind::info_nce_loss: return at::cross_entropy_loss(forth, own_);
      case LayerKind::sig_lip_loss: return of_pairs(forth);
      default: break;
    }
    const at::Tensor back = scores(views_.second, views_.first_of_all);
    if (kind_ == LayerKind::clip_loss) {
      return at::cross_entropy_loss(at::cat({forth, back}), at::cat({own_, own_}));
    }
    const at::Tensor of_first =
        at::cat({forth, others(scores(views_.first, views_.first_of_all))}, 1);
    const at::Tensor of_second =
        at::cat({back, others(scores(views_.second, views_.second_of_all))}, 1);
    const at::Tensor all = at::cat({of_first, of_second});
    return kind_ == LayerKind::sup_con_loss ? of_labels(all, labels)
                                            : at::cross_entropy_loss(all, at::cat({own_, own_}));
  }

 private:
  at::Tensor scores(const at::Tensor& own, const at::Tensor& all) const {
    return own.matmul(all.transpose(0, 1)) / arguments_.temperature;
  }
  at::Tensor others(const at::Tensor& similar) const {
    return similar.masked_fill(is_own_, -std::numeric_limits<double>::infinity());
  }

  at::Tensor of_pairs(const at::Tensor& forth) const {
    const at::Tensor signs = is_own_.to(forth.scalar_type()) * 2 - 1;
    return -at::log_sigmoid(signs * (forth + arguments_.threshold)).sum() /
           static_cast<double>(views_.first.size(0));
  }

  at::Tensor of_labels(const at::Tensor& all, const at::Tensor& labels) const {
    const at::Tensor same = labels.index_select(0, own_).unsqueeze(1).eq(labels.unsqueeze(0));
    const at::Tensor of_one = at::cat({same, same & ~is_own_}, 1);
    const at::Tensor right = at::cat({of_one, of_one});
    const at::Tensor of_right = at::log_softmax(all, 1).masked_fill(~right, 0).sum(1);
    return -arguments_.threshold * (of_right / right.sum(1)).mean();
  }

  LayerKind kind_;
  const LossArguments& arguments_;
  const Compared& views_;
  at::Tensor own_;     ///< the samples of this rank among all
  at::Tensor is_own_;  ///< [samples, all samples]
};

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
  const Compared views{leaves[0], leaves[1], leaves[2], leaves[3]};
  const at::Tensor labels = reads.size() > 4 ? reads[4] : at::Tensor();
  const at::Tensor result =
      ComparisonOf(loss, views, static_cast<int64_t>(lists.scalars[behind_factor + 1]))
          .value(labels);
  if (!is_backward) {
    operands.store(lists.writes[0], result);
    return;
  }
  const at::Tensor factor = at::full_like(result, lists.scalars[0]);
  const auto gradients =
      torch::autograd::grad({result}, leaves, {factor}, std::nullopt, false, true);
  for (size_t i = 0; i < 4; ++i) {
    // Of one direction alone two of the four take no part.
    operands.store(lists.writes[i], gradients[i].defined() ? gradients[i].flatten()
                                                           : at::zeros_like(leaves[i]).flatten());
  }
}

}  // namespace lockstep::backend
