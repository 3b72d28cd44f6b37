#pragma once

#include "model/strategy/local_model/forward_part.hpp"

namespace lockstep {

/// How the batch of a forward comes to the device: its inputs, and the targets of its loss.
class BatchArrival : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  void bring(Rank& rank, const Batch& batch, const StepOptions& options, After after);
  /// One without the other, for a stage of a pipeline.
  void bring_input(Rank& rank, const Batch& batch, const StepOptions& options);
  void bring_target(Rank& rank, const Batch& batch, const StepOptions& options);

 private:
  Slice input_on_host(Rank& rank, const Batch& batch, const StepOptions& options) const;
  Slice target_on_host(Rank& rank, const Batch& batch, const StepOptions& options) const;
  Slice bring_alone(Rank& rank, const Slice& host);
  void copy_to_device(Rank& rank, const Slice& host, const Slice& there, After after) const;
  Values own_positions(const Values& samples, const Shape& part) const;
};

}  // namespace lockstep
