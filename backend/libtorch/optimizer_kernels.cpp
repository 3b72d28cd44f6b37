#include "backend/libtorch/optimizer_kernels.hpp"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <memory>

#include <cmath>

#include "backend/libtorch/update_numbers.hpp"
#include "model/core/ensure.hpp"
#include "model/network/optimizer/optimizers.hpp"

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

double scalar_if_given(const OpLists& lists, size_t index) {
  return index < lists.scalars.size() ? lists.scalars[index] : 0;
}

/// The classes of C++ have no `maximize`, which only turns the gradient.
at::Tensor maximized(const OpLists& lists, size_t index, const at::Tensor& gradient) {
  return scalar_if_given(lists, index) != 0 ? gradient.neg() : gradient;
}

void sgd(const OpLists& lists, TensorOperands& operands, const std::vector<at::Tensor>& written,
         const at::Tensor& gradient) {
  const int64_t step = static_cast<int64_t>(lists.scalars[3]);
  // A scheduler that cycles the momentum may have made it 0: the buffer waits then.
  const bool has_momentum = written.size() > 1 && lists.scalars[1] != 0;
  ensure(step >= 1, "steps count from 1");
  ensure(has_momentum == (lists.scalars[1] != 0), "momentum has its buffer");
  const at::Tensor parameter = parameter_with_gradient(written[0], maximized(lists, 6, gradient));
  torch::optim::SGD optimizer({parameter}, torch::optim::SGDOptions(lists.scalars[0])
                                               .momentum(lists.scalars[1])
                                               .weight_decay(lists.scalars[2])
                                               .dampening(scalar_if_given(lists, 4))
                                               .nesterov(scalar_if_given(lists, 5) != 0));
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
  const at::Tensor parameter = parameter_with_gradient(written[0], maximized(lists, 7, gradient));
  const at::Tensor& first = written[1];
  const at::Tensor& second = written[2];
  const bool has_largest = written.size() > 3;
  Optimizer optimizer({parameter}, Options(lists.scalars[0])
                                       .betas({lists.scalars[1], lists.scalars[2]})
                                       .eps(lists.scalars[3])
                                       .weight_decay(lists.scalars[4])
                                       .amsgrad(has_largest));
  auto state = std::make_unique<State>();
  state->step(static_cast<int64_t>(lists.scalars[5]) - 1);  // `step` counts this one
  state->exp_avg(first);
  state->exp_avg_sq(second);
  if (has_largest) {
    state->max_exp_avg_sq(written[3]);
  }
  void* const place = parameter.unsafeGetTensorImpl();
  optimizer.state()[place] = std::move(state);
  optimizer.step();
  operands.store(lists.writes[0], parameter);
  operands.store(lists.writes[1], first);
  operands.store(lists.writes[2], second);
  if (has_largest) {
    const auto& after = static_cast<State&>(*optimizer.state().at(place));
    operands.store(lists.writes[3], after.max_exp_avg_sq());
  }
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

void update_by(const UpdateCall& call, const at::Tensor& gradient, TensorNumbers& parameter,
               std::vector<TensorNumbers>& state, SharedNorms* shared) {
  TensorNumbers direction(gradient.to(parameter.tensor().scalar_type(), false, /*copy=*/true));
  const bool is_known =
      visit_optimizer(OptimizersOfOneKernel{}, call.settings.kind, [&]<class Optimizer>(Optimizer) {
        Optimizer::update(
            call.settings, call.moment,
            Updated<TensorNumbers>{parameter, direction, state, call.rows, call.columns, shared});
      });
  ensure(is_known, "the kernel optimizer_step knows this optimizer");
}

SharedNorms norms_from(const std::vector<at::Tensor>& read, size_t count) {
  SharedNorms norms;
  for (size_t i = 1; i <= count; ++i) {
    norms.known.push_back(read[i].sqrt().item<double>());
  }
  return norms;
}

void measure_norm(const UpdateCall& call, const OpLists& lists, TensorOperands& operands) {
  const std::vector<at::Tensor> read = load_all(lists.reads, operands);
  const auto known = static_cast<size_t>(call.shared_norms);
  SharedNorms norms = norms_from(read, known);
  TensorNumbers parameter(read[1 + known].clone());
  std::vector<TensorNumbers> state;
  for (size_t i = 2 + known; i < read.size(); ++i) {
    state.emplace_back(read[i].clone());
  }
  update_by(call, read[0], parameter, state, &norms);
  operands.store(lists.writes[0],
                 at::full({1}, norms.own * norms.own, operands.load(lists.writes[0]).options()));
}

void update(const OpLists& lists, TensorOperands& operands, const std::vector<at::Tensor>& written,
            const at::Tensor& gradient) {
  const UpdateCall call = update_call_from(lists.scalars);
  if (call.use == UpdateCall::Use::measure) {
    measure_norm(call, lists, operands);
    return;
  }
  TensorNumbers parameter(written[0]);
  std::vector<TensorNumbers> state;
  for (size_t i = 1; i < written.size(); ++i) {
    state.emplace_back(written[i]);
  }
  SharedNorms norms;
  if (call.shared_norms > 0) {
    norms = norms_from(load_all(lists.reads, operands), static_cast<size_t>(call.shared_norms));
  }
  update_by(call, gradient, parameter, state, call.shared_norms > 0 ? &norms : nullptr);
  operands.store(lists.writes[0], parameter.tensor());
  for (size_t i = 0; i < state.size(); ++i) {
    operands.store(lists.writes[i + 1], state[i].tensor());
  }
}

}  // namespace

void execute_optimizer(const Op& op, TensorOperands& operands) {
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
  } else if (op.kernel == Kernel::optimizer_step) {
    update(lists, operands, written, gradient);
  } else if (lists.scalars[6] != 0) {
    adam<torch::optim::AdamW, torch::optim::AdamWOptions, torch::optim::AdamWParamState>(
        lists, operands, written, gradient);
  } else {
    adam<torch::optim::Adam, torch::optim::AdamOptions, torch::optim::AdamParamState>(
        lists, operands, written, gradient);
  }
}

}  // namespace lockstep::backend
