#include "backend/libtorch/optimizer_kernels.hpp"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <memory>

#include <cmath>

#include "model/core/ensure.hpp"

// An optimizer lives for one step of one tensor: its state comes from the operands and goes back to
// them. All of torch's state can be set, so its own `step` runs.

namespace lockstep::backend {

namespace {

/// A parameter with its gradient, as an optimizer takes it; the gradient in the parameter's type.
at::Tensor parameter_with_gradient(const at::Tensor& parameter, const at::Tensor& gradient) {
  at::Tensor tensor = parameter.detach();
  tensor.mutable_grad() = gradient.to(tensor.scalar_type());
  return tensor;
}

void sgd(const OpLists& lists, TensorOperands& operands, const std::vector<at::Tensor>& written,
         const at::Tensor& gradient) {
  const int64_t step = static_cast<int64_t>(lists.scalars[3]);
  const bool has_momentum = written.size() > 1;
  ensure(step >= 1, "steps count from 1");
  ensure(has_momentum == (lists.scalars[1] != 0), "momentum has its buffer");
  const at::Tensor parameter = parameter_with_gradient(written[0], gradient);
  torch::optim::SGD optimizer({parameter}, torch::optim::SGDOptions(lists.scalars[0])
                                               .momentum(lists.scalars[1])
                                               .weight_decay(lists.scalars[2]));
  void* const place = parameter.unsafeGetTensorImpl();
  if (has_momentum && step > 1) {  // without state the first gradient becomes the momentum
    auto state = std::make_unique<torch::optim::SGDParamState>();
    state->momentum_buffer(written[1]);
    optimizer.state()[place] = std::move(state);
  }
  optimizer.step();
  operands.store(lists.writes[0], parameter);
  if (has_momentum) {
    const auto& state = static_cast<torch::optim::SGDParamState&>(*optimizer.state().at(place));
    operands.store(lists.writes[1], state.momentum_buffer());
  }
}

template <class Optimizer, class Options, class State>
void adam(const OpLists& lists, TensorOperands& operands, const std::vector<at::Tensor>& written,
          const at::Tensor& gradient) {
  const at::Tensor parameter = parameter_with_gradient(written[0], gradient);
  const at::Tensor& first = written[1];
  const at::Tensor& second = written[2];
  Optimizer optimizer({parameter}, Options(lists.scalars[0])
                                       .betas({lists.scalars[1], lists.scalars[2]})
                                       .eps(lists.scalars[3])
                                       .weight_decay(lists.scalars[4]));
  auto state = std::make_unique<State>();
  state->step(static_cast<int64_t>(lists.scalars[5]) - 1);  // `step` counts this one
  state->exp_avg(first);
  state->exp_avg_sq(second);
  optimizer.state()[parameter.unsafeGetTensorImpl()] = std::move(state);
  optimizer.step();
  operands.store(lists.writes[0], parameter);
  operands.store(lists.writes[1], first);
  operands.store(lists.writes[2], second);
}

// Bagua's optimizer is written in Python: its calls, one after the other.
void qadam(const OpLists& lists, TensorOperands& operands, const std::vector<at::Tensor>& written,
           const at::Tensor& gradient) {
  const double step = lists.scalars[4];
  const double correction1 = 1 - std::pow(lists.scalars[1], step);
  const double correction2 = 1 - std::pow(lists.scalars[2], step);
  const at::Tensor own_gradient = gradient.to(written[1].scalar_type());
  at::Tensor first = written[1];
  at::Tensor second = written[2];
  if (lists.scalars[5] != 0) {
    first = first.mul(lists.scalars[1]).add(own_gradient, 1 - lists.scalars[1]);
    second = second.mul(lists.scalars[2]).addcmul(own_gradient, own_gradient, 1 - lists.scalars[2]);
    operands.store(lists.writes[1], first);
    operands.store(lists.writes[2], second);
  }
  const at::Tensor denominator = second.sqrt().div(std::sqrt(correction2)).add(lists.scalars[3]);
  const at::Tensor update = first.div(denominator);
  operands.store(lists.writes[0], written[0].add(update.mul(-lists.scalars[0] / correction1)));
}

}  // namespace

void execute_optimizer(const Op& op, TensorOperands& operands) {
  using namespace torch::optim;
  const OpLists& lists = op.list();
  if (lists.reads.empty() || lists.writes.empty()) {
    return;
  }
  const at::Tensor gradient = operands.load(lists.reads[0]);
  const std::vector<at::Tensor> written = load_all(lists.writes, operands);
  if (!gradient.defined() || written.empty()) {
    return;
  }
  if (op.kernel == Kernel::sgd_step) {
    sgd(lists, operands, written, gradient);
  } else if (op.kernel == Kernel::qadam_step) {
    qadam(lists, operands, written, gradient);
  } else if (lists.scalars[6] != 0) {
    adam<AdamW, AdamWOptions, AdamWParamState>(lists, operands, written, gradient);
  } else {
    adam<Adam, AdamOptions, AdamParamState>(lists, operands, written, gradient);
  }
}

}  // namespace lockstep::backend
