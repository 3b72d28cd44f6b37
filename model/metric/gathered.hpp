#pragma once

#include <cstdint>
#include <vector>

#include "model/metric/metric.hpp"
#include "model/program/shared_values.hpp"

namespace lockstep {

/// Contributions of all ranks to one tensor (TorchMetrics' gather_all_tensors): the shapes one
/// behind the other, and the values, each padded to the largest shape.
struct Gathered {
  SharedValues shapes;  ///< int64; null for scalars
  SharedValues values;
  int64_t ranks = 1;
  std::vector<int64_t> padded;  ///< the largest shape

  /// The tensor of every rank, in rank order.
  std::vector<Tensor> parts() const;
};

/// The values of a tensor in one that is at least as large in every dimension, zeros around them.
Values padded_values(const Tensor& own, const std::vector<int64_t>& padded);

}  // namespace lockstep
