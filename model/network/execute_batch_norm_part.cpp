// A batch norm whose statistics ranks share: what each computes between two exchanges.
#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/shared_batch_norm.hpp"
#include "model/network/batch_norm_part.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

namespace {

constexpr size_t part_of_forward = 3;
constexpr size_t part_of_backward = 1;

struct PartOfBatchNorm {
  const BatchNormArguments& arguments;
  BatchNormShape shape;
  bool is_own = false;
};

PartOfBatchNorm batch_norm_part(const Layer& layer, const LayerCall& call, size_t scalar) {
  const auto& arguments = std::get<BatchNormArguments>(layer.arguments);
  const int64_t channels = arguments.num_features;
  return {arguments,
          {call.samples(), channels, elements_of(layer.input) / channels},
          static_cast<BatchNormPart>(call.scalar(scalar)) == BatchNormPart::own};
}

}  // namespace

bool is_batch_norm_part(const Op& op, const Layer& layer) {
  const size_t part = op.kernel == Kernel::layer_forward ? part_of_forward : part_of_backward;
  return layer.kind == LayerKind::batch_norm && op.list().scalars.size() > part;
}

bool forward_of_batch_norm_part(const Layer& layer, LayerCall& call) {
  if (call.scalars() <= part_of_forward) {
    return false;
  }
  const PartOfBatchNorm part = batch_norm_part(layer, call, part_of_forward);
  if (part.is_own) {
    own_statistics(call.read(0), part.shape, part.arguments.eps, call.write(0));
    return true;
  }
  const bool affine = part.arguments.affine;
  const Values& gathered = call.read(affine ? 3 : 1);
  Values& statistics = call.write(1);
  merge_statistics(gathered, part.shape.channels, part.arguments.eps, statistics);
  const Values mean = mean_of(statistics);
  const Values variance = variance_of(statistics, part.arguments.eps);
  if (part.arguments.track_running_stats && call.writes() > 2) {
    batch_norm_update_running(mean, variance, count_of(statistics), part.arguments.momentum,
                              call.write(2), call.write(3), call.write(4));
  }
  batch_norm_normalise(call.read(0), mean, variance, call.read_if(1, affine),
                       call.read_if(2, affine), part.shape, part.arguments.eps, call.write(0));
  return true;
}

bool backward_of_batch_norm_part(const Layer& layer, LayerCall& call) {
  if (call.scalars() <= part_of_backward) {
    return false;
  }
  const PartOfBatchNorm part = batch_norm_part(layer, call, part_of_backward);
  const Values& statistics = call.read(2);
  if (!part.is_own) {
    shared_input_gradient(call.read(1), call.read(0), statistics, call.read(3),
                          call.read_if(4, part.arguments.affine), part.shape, call.write(0));
    return true;
  }
  own_gradient_sums(call.read(1), call.read(0), statistics, part.shape, call.write(0));
  if (call.wants(1)) {
    const DType dtype = call.write(0).dtype();
    Values bias(dtype, part.shape.channels);
    Values weight(dtype, part.shape.channels);
    batch_norm_gradient_sums(call.read(1), call.read(0), mean_of(statistics),
                             variance_of(statistics, part.arguments.eps), part.shape,
                             part.arguments.eps, bias, weight);
    accumulate(Reduction::sum, call.write(1), weight);
    accumulate(Reduction::sum, call.write(2), bias);
  }
  return true;
}

}  // namespace lockstep
