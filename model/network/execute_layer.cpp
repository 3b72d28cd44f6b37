#include "model/network/execute_layer.hpp"

#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/activation.hpp"
#include "model/network/arithmetic/batch_norm.hpp"
#include "model/network/arithmetic/embedding.hpp"
#include "model/network/arithmetic/linear.hpp"
#include "model/network/arithmetic/placing.hpp"
#include "model/network/arithmetic/tensor.hpp"
#include "model/network/attention_part.hpp"
#include "model/network/layer_call.hpp"
#include "model/network/network.hpp"
#include "model/network/output_type.hpp"

namespace lockstep {

namespace {

void add_to(Values& sum, const Values& term) { accumulate(Reduction::sum, sum, term); }

/// Two branches meet: each is brought to the type of the result first.
void add_both(LayerCall& call) {
  call.write_cast(0, call.read(0));
  Values other(call.write(0).dtype(), call.write(0).size());
  cast(call.read(call.reads() - 1), other);
  add_to(call.write(0), other);
}

/// At the beginning of a residual. Behind a Concatenate the gradient that came round the branch is
/// that of both parts of each sample, and what was remembered is the first.
void add_both_gradients(LayerCall& call) {
  call.write_cast(0, call.read(0));
  const int64_t elements = call.write(0).size();
  Values other(call.write(0).dtype(), elements);
  const Values& round = call.read(call.reads() - 1);
  if (round.size() == elements) {
    cast(round, other);
  } else {
    take_columns(round, call.samples(), 0, elements / call.samples(), other);
  }
  add_to(call.write(0), other);
}

BatchNormShape batch_norm_shape(const Layer& layer, int64_t samples) {
  const auto& arguments = std::get<BatchNormArguments>(layer.arguments);
  return {samples, arguments.num_features, elements_of(layer.input) / arguments.num_features};
}

void batch_norm_forward(const Layer& layer, LayerCall& call, int64_t samples, bool training) {
  const auto& arguments = std::get<BatchNormArguments>(layer.arguments);
  const BatchNormShape shape = batch_norm_shape(layer, samples);
  const Values* weight = arguments.affine ? &call.read(1) : nullptr;
  const Values* bias = arguments.affine ? &call.read(2) : nullptr;
  const DType dtype = call.write(0).dtype() == DType::fp64 ? DType::fp64 : DType::fp32;
  Values mean(dtype, shape.channels);
  Values variance(dtype, shape.channels);
  if (training || !arguments.track_running_stats) {
    batch_norm_statistics(call.read(0), shape, mean, variance);
    if (training && arguments.track_running_stats && call.writes() > 1) {
      batch_norm_update_running(mean, variance, shape.values_per_channel(), arguments.momentum,
                                call.write(1), call.write(2), call.write(3));
    }
  } else {
    mean = call.write(1);
    variance = call.write(2);
  }
  batch_norm_normalise(call.read(0), mean, variance, weight, bias, shape, arguments.eps,
                       call.write(0));
}

void batch_norm_backward(const Layer& layer, LayerCall& call, int64_t samples) {
  const auto& arguments = std::get<BatchNormArguments>(layer.arguments);
  const BatchNormShape shape = batch_norm_shape(layer, samples);
  const DType dtype = call.read(1).dtype() == DType::fp64 ? DType::fp64 : DType::fp32;
  Values mean(dtype, shape.channels);
  Values variance(dtype, shape.channels);
  Values gradient_sum(dtype, shape.channels);
  Values product_sum(dtype, shape.channels);
  batch_norm_statistics(call.read(1), shape, mean, variance);
  batch_norm_gradient_sums(call.read(1), call.read(0), mean, variance, shape, arguments.eps,
                           gradient_sum, product_sum);
  if (call.wants(0)) {
    batch_norm_input_gradient(call.read(1), call.read(0), mean, variance,
                              arguments.affine ? &call.read(2) : nullptr, gradient_sum, product_sum,
                              shape.values_per_channel(), shape, arguments.eps, call.write(0));
  }
  if (call.wants(1)) {
    add_to(call.write(1), product_sum);
    add_to(call.write(2), gradient_sum);
  }
}

/// `first_row`: the scalar that says it.
EmbeddingShape embedding_shape(const Layer& layer, const LayerCall& call, size_t first_row) {
  const auto& arguments = std::get<EmbeddingArguments>(layer.arguments);
  EmbeddingShape shape{arguments.num_embeddings, arguments.embedding_dim, std::nullopt};
  if (arguments.is_part) {
    shape.first_row = static_cast<int64_t>(call.scalar(first_row));
  }
  return shape;
}

void forward(const Layer& layer, LayerCall& call) {
  if (has_divided_positions(layer) && forward_of_divided_positions(layer, call)) {
    call.store();
    return;
  }
  const auto samples = static_cast<int64_t>(call.scalar(0));
  const int64_t inputs = call.read(0).size();
  switch (layer.kind) {
    case LayerKind::linear: {
      const auto& a = std::get<LinearArguments>(layer.arguments);
      linear_forward(call.read(0), call.read(1), a.bias ? &call.read(2) : nullptr,
                     inputs / a.in_features, a.in_features, a.out_features, call.write(0));
      break;
    }
    case LayerKind::bias: {
      const auto& a = std::get<BiasArguments>(layer.arguments);
      bias_forward(call.read(0), call.read(1), {inputs / a.features, a.features, a.shares},
                   call.write(0));
      break;
    }
    case LayerKind::relu: relu_forward(call.read(0), call.write(0)); break;
    case LayerKind::embedding:
      embedding_forward(call.read(0), call.read(1), embedding_shape(layer, call, 3), call.write(0));
      break;
    case LayerKind::batch_norm:
      if (!forward_of_batch_norm_part(layer, call)) {
        batch_norm_forward(layer, call, samples, call.scalar(1) != 0);
      }
      break;
    case LayerKind::residual_add: add_both(call); break;
    case LayerKind::residual_begin:
    case LayerKind::identity:
    case LayerKind::flatten:
    case LayerKind::buffer: call.write(0) = call.read(0); break;
    default:
      if (!forward_of_sequence_layer(layer, call) && !forward_of_image_layer(layer, call) &&
          !forward_of_elementwise_layer(layer, call) && !forward_of_decoder_layer(layer, call) &&
          !forward_of_scaling_layer(layer, call) && !forward_of_aside_layer(layer, call) &&
          !forward_of_mixture_layer(layer, call)) {
        return;
      }
  }
  call.store();
}

void linear_backward(const Layer& layer, LayerCall& call) {
  const auto& a = std::get<LinearArguments>(layer.arguments);
  const int64_t rows = call.read(1).size() / a.in_features;
  if (call.wants(0)) {
    linear_input_gradient(call.read(0), call.read(2), rows, a.in_features, a.out_features,
                          call.write(0));
  }
  if (call.wants(1)) {
    linear_weight_gradient(call.read(1), call.read(0), rows, a.in_features, a.out_features,
                           call.write(1));
  }
  if (a.bias && call.wants(2)) {
    bias_weight_gradient(call.read(0), rows, a.out_features, call.write(2));
  }
}

void backward(const Layer& layer, LayerCall& call) {
  if (has_divided_positions(layer) && backward_of_divided_positions(layer, call)) {
    call.store();
    return;
  }
  const auto samples = static_cast<int64_t>(call.scalar(0));
  switch (layer.kind) {
    case LayerKind::linear: linear_backward(layer, call); break;
    case LayerKind::bias: {
      const int64_t features = std::get<BiasArguments>(layer.arguments).features;
      if (call.wants(0)) {
        call.write_cast(0, call.read(0));
      }
      if (call.wants(1)) {
        bias_weight_gradient(call.read(0), call.read(0).size() / features, features, call.write(1));
      }
      break;
    }
    case LayerKind::relu:
      if (call.wants(0)) {
        relu_backward(call.read(1), call.read(0), call.write(0));
      }
      break;
    case LayerKind::embedding:
      if (call.wants(1)) {
        embedding_weight_gradient(call.read(1), call.read(0), embedding_shape(layer, call, 1),
                                  call.write(1));
      }
      break;
    case LayerKind::batch_norm:
      if (!backward_of_batch_norm_part(layer, call)) {
        batch_norm_backward(layer, call, samples);
      }
      break;
    case LayerKind::residual_begin:
      if (call.wants(0)) {
        add_both_gradients(call);
      }
      break;
    case LayerKind::residual_add:
    case LayerKind::identity:
    case LayerKind::flatten:
    case LayerKind::buffer:
      if (call.wants(0)) {
        call.write_cast(0, call.read(0));
      }
      break;
    default:
      if (!backward_of_sequence_layer(layer, call) && !backward_of_image_layer(layer, call) &&
          !backward_of_elementwise_layer(layer, call) && !backward_of_decoder_layer(layer, call) &&
          !backward_of_scaling_layer(layer, call) && !backward_of_aside_layer(layer, call) &&
          !backward_of_mixture_layer(layer, call)) {
        return;
      }
  }
  call.store();
}

}  // namespace

void execute_layer(const Op& op, Operands& operands, const Network& network) {
  LayerCall call(op, operands);
  if (!call.valued()) {
    return;
  }
  if (op.kernel == Kernel::loss_forward || op.kernel == Kernel::loss_backward) {
    execute_loss(op.kernel == Kernel::loss_forward, network.loss_of(op.tag), call);
    return;
  }
  const Layer& layer = network.layers.at(static_cast<size_t>(op.tag));
  const bool is_forward = op.kernel == Kernel::layer_forward;
  const bool training = !is_forward || call.scalar(1) != 0;
  if (!has_reference_arithmetic(layer, training)) {
    return;
  }
  // A core of attention has no weights, and its input is narrow already.
  const size_t weight = is_forward ? 1 : 2;
  if (is_product(layer.kind) && !is_divided_core(layer) && is_floating(op.dtype) &&
      weight < call.reads() && size_of(op.dtype) < size_of(call.read(weight).dtype())) {
    call.narrow(op.dtype);
  }
  if (is_forward) {
    forward(layer, call);
  } else {
    backward(layer, call);
  }
}

}  // namespace lockstep
