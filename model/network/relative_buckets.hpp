#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "model/network/layer_arguments.hpp"

namespace lockstep {

/// The row of the table for a query at `position` and a key at `other`, as transformers'
/// T5Attention computes it, in fp32.
inline int64_t relative_bucket(const RelativePositionBiasArguments& arguments, int64_t position,
                               int64_t other) {
  int64_t buckets = arguments.num_buckets;
  int64_t first = 0;
  int64_t distance = other - position;
  if (arguments.bidirectional) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(0, -distance);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) {
    return first + distance;
  }
  const auto ratio =
      std::log(static_cast<double>(arguments.max_distance) / static_cast<double>(exact));
  const float far = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                    static_cast<float>(ratio) * static_cast<float>(buckets - exact);
  return first + std::min(buckets - 1, exact + static_cast<int64_t>(far));
}

}  // namespace lockstep
