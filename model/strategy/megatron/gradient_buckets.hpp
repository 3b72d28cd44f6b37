#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

/// A parameter as Megatron-LM's buffers see it.
struct BufferedParameter {
  size_t parameter = 0;  ///< index into Replica::parameters()
  int64_t elements = 0;
  bool is_shared = false;  ///< by the first and the last stage: has a bucket of its own
};

/// Where a parameter lies in a buffer.
struct BufferedPart {
  size_t parameter = 0;
  int64_t begin = 0;
  int64_t elements = 0;
};

/// Elements [begin, end) of a buffer, which are reduced by one call.
struct GradientBucket {
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<BufferedPart> parts{};  ///< ascending
  int64_t elements() const { return end - begin; }
};

/// The buffer of a model chunk, whose gradients (and parameters, with a distributed optimizer) lie
/// one behind the other (megatron/core/distributed/param_and_grad_buffer.py).
struct GradientBuffer {
  std::vector<GradientBucket> buckets{};
  int64_t elements = 0;
};

struct BucketOptions {
  std::optional<int64_t> bucket_elements{};  ///< a bucket closes with so many; none: one bucket
  std::optional<int64_t> shards{};  ///< of a distributed optimizer: buckets are padded for them
};

/// `parameters`: in definition order, of which the last comes first, roughly as their gradients do.
GradientBuffer megatron_buffer(const std::vector<BufferedParameter>& parameters,
                               const BucketOptions& options);

}  // namespace lockstep
