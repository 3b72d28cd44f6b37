#pragma once

#include <cstdint>
#include <vector>

#include "model/metric/metric.hpp"

namespace lockstep {

/// `preds` and `target` of regression as columns: [samples] is one, [samples, outputs] is one an
/// output. fp32, as the metrics compute.
struct SampleColumns {
  std::vector<std::vector<float>> predictions;
  std::vector<std::vector<float>> target;
  bool has_outputs = false;  ///< of two dimensions

  size_t samples() const { return target.front().size(); }
  /// What a sum over the samples has: [] or [outputs].
  std::vector<int64_t> shape_of_sum() const;
};

/// Throws OperationError unless both have the same shape of one or two dimensions.
SampleColumns sample_columns(const MetricInputs& inputs);
/// The same; `outputs` columns are due.
SampleColumns sample_columns(const MetricInputs& inputs, int64_t outputs);

/// The metrics compute in fp32.
inline float narrow(double value) { return static_cast<float>(value); }

/// state + more as torch broadcasts it: a state of shape [] takes the shape of what is added.
void add_broadcast(Tensor& state, const Tensor& more);

}  // namespace lockstep
