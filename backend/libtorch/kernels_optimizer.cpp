#include "backend/libtorch/kernels_optimizer.hpp"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "backend/libtorch/kernels_tensor.hpp"
#include "model/core/ensure.hpp"

// An optimizer lives for one step of one tensor: its state comes from the operands and goes back to
// them. All of torch's state can be set, so its own `step` runs.

namespace lockstep::backend {

namespace {

/// A parameter with its gradient, as an optimizer takes it; the gradient in the parameter's type.
at::Tensor parameter_with_gradient(Values parameter, Values gradient) {
  at::Tensor tensor = tensor_of(std::move(parameter));
  tensor.mutable_grad() = tensor_of(std::move(gradient)).to(tensor.scalar_type());
  return tensor;
}

void sgd(const OpLists& lists, Operands& operands, std::vector<Values> written, Values gradient) {
  const int64_t step = static_cast<int64_t>(lists.scalars[3]);
  const bool has_momentum = written.size() > 1;
  ensure(step >= 1, "steps count from 1");
  ensure(has_momentum == (lists.scalars[1] != 0), "momentum has its buffer");
  const at::Tensor parameter = parameter_with_gradient(std::move(written[0]), std::move(gradient));
  torch::optim::SGD optimizer({parameter}, torch::optim::SGDOptions(lists.scalars[0])
                                               .momentum(lists.scalars[1])
                                               .weight_decay(lists.scalars[2]));
  void* const place = parameter.unsafeGetTensorImpl();
  if (has_momentum && step > 1) {  // without state the first gradient becomes the momentum
    auto state = std::make_unique<torch::optim::SGDParamState>();
    state->momentum_buffer(tensor_of(std::move(written[1])));
    optimizer.state()[place] = std::move(state);
  }
  optimizer.step();
  operands.store(lists.writes[0], values_of(parameter, lists.writes[0].dtype));
  if (has_momentum) {
    const auto& state = static_cast<torch::optim::SGDParamState&>(*optimizer.state().at(place));
    operands.store(lists.writes[1], values_of(state.momentum_buffer(), lists.writes[1].dtype));
  }
}

template <class Optimizer, class Options, class State>
void adam(const OpLists& lists, Operands& operands, std::vector<Values> written, Values gradient) {
  const at::Tensor parameter = parameter_with_gradient(std::move(written[0]), std::move(gradient));
  const at::Tensor first = tensor_of(std::move(written[1]));
  const at::Tensor second = tensor_of(std::move(written[2]));
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
  operands.store(lists.writes[0], values_of(parameter, lists.writes[0].dtype));
  operands.store(lists.writes[1], values_of(first, lists.writes[1].dtype));
  operands.store(lists.writes[2], values_of(second, lists.writes[2].dtype));
}

}  // namespace

void execute_optimizer(const Op& op, Operands& operands) {
  using namespace torch::optim;
  const OpLists& lists = op.list();
  if (lists.reads.empty() || lists.writes.empty()) {
    return;
  }
  Values gradient = operands.load(lists.reads[0]);
  std::vector<Values> written = load_all(lists.writes, operands);
  if (gradient.empty() || written.empty()) {
    return;
  }
  if (op.kernel == Kernel::sgd_step) {
    sgd(lists, operands, std::move(written), std::move(gradient));
  } else if (lists.scalars[6] != 0) {
    adam<AdamW, AdamWOptions, AdamWParamState>(lists, operands, std::move(written),
                                               std::move(gradient));
  } else {
    adam<Adam, AdamOptions, AdamParamState>(lists, operands, std::move(written),
                                            std::move(gradient));
  }
}

}  // namespace lockstep::backend
