#pragma once

#include <optional>

#include "model/core/dtype.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// A type of 16 bits that a run computes or communicates in while it updates wider parameters.
struct NarrowType {
  DType dtype = DType::bf16;
  bool in_layers = false;  ///< else in collectives alone
};

/// That of a strategy which keeps wide parameters beside narrow ones (param_dtype and reduce_dtype
/// of FSDP, the fp32 part of DeepSpeed in 16 bits, FairScale's reduce_fp16), by what was recorded.
std::optional<NarrowType> narrow_beside_parameters(const OneRun& run);

}  // namespace lockstep::cli
