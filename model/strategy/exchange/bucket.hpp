#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/units.hpp"

namespace lockstep {

/// A tensor as bucket assignment sees it.
struct BucketedTensor {
  DType dtype = DType::fp32;
  Bytes bytes{};
};

/// Indices of the tensors of each bucket, in bucket order.
using BucketAssignment = std::vector<std::vector<size_t>>;

/// PyTorch's compute_bucket_assignment_by_size (reducer.cpp): walk the tensors in the given order
/// and add each to the open bucket of its type; once that holds at least its limit it is closed and
/// the next limit counts, the last one forever. So a bucket overshoots its limit by up to a
/// tensor. What is left over makes the last buckets. No limits: one bucket a type.
BucketAssignment assign_buckets(std::span<const BucketedTensor> tensors,
                                std::span<const size_t> order, std::span<const Bytes> limits);

/// Assigns in definition order, with buckets sorted by their smallest index, as PyTorch does
/// without a given order.
BucketAssignment assign_buckets(std::span<const BucketedTensor> tensors,
                                std::span<const Bytes> limits);

}  // namespace lockstep
