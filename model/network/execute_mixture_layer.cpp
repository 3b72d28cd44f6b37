// The arithmetic of a mixture of experts, from operands of a layer kernel.
#include <vector>

#include "model/network/arithmetic/expert_routing.hpp"
#include "model/network/arithmetic/experts.hpp"
#include "model/network/arithmetic/linear.hpp"
#include "model/network/expert_parameters.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

namespace {

std::vector<int64_t> rows_of(const ExpertRouting& routing) {
  std::vector<int64_t> rows;
  for (const auto& choices : routing.taken) {
    rows.push_back(std::ssize(choices));
  }
  return rows;
}

/// How many choices fell on each expert are added to write `at`, if somebody counts.
void count_choices(const ExpertRouting& routing, LayerCall& call, size_t at) {
  if (!call.wants(at)) {
    return;
  }
  const std::vector<int64_t> counts = routing.choices_of_experts();
  for (size_t expert = 0; expert < counts.size(); ++expert) {
    const auto index = static_cast<int64_t>(expert);
    call.write(at).set_integer(index, call.write(at).integer(index) + counts[expert]);
  }
}

void mixture_forward(const MixtureArguments& mixture, LayerCall& call) {
  const DType dtype = call.write(0).dtype();
  const ExpertRouting routing = route(call.read(0), call.read(1), mixture, dtype);
  const ExpertParameters parameters(mixture, call, 2);
  const Values sent = dispatched(call.read(0), routing);
  Values given(dtype, sent.size());
  experts_forward(sent, parameters.weights(), rows_of(routing), mixture, given);
  combine(given, routing, call.write(0));
  count_choices(routing, call, 1);
}

void mixture_backward(const MixtureArguments& mixture, LayerCall& call) {
  const Values& output_gradient = call.read(0);
  const Values& input = call.read(1);
  const Values& router = call.read(2);
  const DType dtype = output_gradient.dtype();
  const ExpertRouting routing = route(input, router, mixture, dtype);
  const ExpertParameters parameters(mixture, call, 3);
  const Values sent = dispatched(input, routing);
  const std::vector<int64_t> rows = rows_of(routing);
  Values given(dtype, sent.size());
  experts_forward(sent, parameters.weights(), rows, mixture, given);
  const CombineGradients combined = combine_backward(output_gradient, given, routing);
  Values sent_gradient(dtype, sent.size());
  ExpertGradientParts parts(mixture, call, 2);
  experts_backward(sent, parameters.weights(), rows, combined.given, mixture, sent_gradient,
                   parts.gradients());
  parts.store();
  const double aux_factor = mixture.aux_loss_coef == 0 ? 0 : mixture.aux_loss_coef * call.scalar(1);
  const Values scores =
      router_output_gradient(routing, mixture, combined.weights, aux_factor, dtype);
  const int64_t features = mixture.embed_dim;
  if (call.wants(1)) {
    linear_weight_gradient(input, scores, routing.rows, features, mixture.num_experts,
                           call.write(1));
  }
  if (call.wants(0)) {
    linear_input_gradient(scores, router, routing.rows, features, mixture.num_experts,
                          call.write(0));
    add_dispatched(sent_gradient, routing, call.write(0));
  }
}

}  // namespace

bool forward_of_mixture_layer(const Layer& layer, LayerCall& call) {
  if (layer.kind != LayerKind::mixture_of_experts) {
    return false;
  }
  const auto& mixture = std::get<MixtureArguments>(layer.arguments);
  if (mixture.is_divided()) {
    mixture_part_forward(mixture, call);
  } else {
    mixture_forward(mixture, call);
  }
  return true;
}

bool backward_of_mixture_layer(const Layer& layer, LayerCall& call) {
  if (layer.kind != LayerKind::mixture_of_experts) {
    return false;
  }
  const auto& mixture = std::get<MixtureArguments>(layer.arguments);
  if (mixture.is_divided()) {
    mixture_part_backward(mixture, call);
  } else {
    mixture_backward(mixture, call);
  }
  return true;
}

}  // namespace lockstep
