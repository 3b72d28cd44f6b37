#pragma once

#include <cstddef>

#include "model/core/buffer.hpp"

namespace lockstep {

/// What the forward of an attention whose positions ranks divide leaves for its backward, where
/// values are computed.
struct ContextRun {
  size_t layer = 0;
  Slice query;
  Slice key;
  Slice value;
  Slice output;    ///< the weighted sum, in the order of the query
  Slice log_sums;  ///< of each row's exponentials, of all keys
};

}  // namespace lockstep
