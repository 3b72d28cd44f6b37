#pragma once

#include "model/program/rank.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

class Replica;

/// A checkpoint that the trainer asks for.
struct CheckpointRequest {
  bool weights_only = false;
  Bytes path{};           ///< its file name as Python pickles it, which some strategies send
  BytesPerSecond disk{};  ///< of each node; 0: files take no time
};

/// What a checkpoint of the whole model holds: parameters and buffers, and beside them what the
/// optimizers keep. Counters and the trainer's own state are left out.
struct ModelBytes {
  Bytes weights{};
  Bytes frozen{};  ///< of the weights, those that are not trained
  Bytes optimizer_state{};
  Bytes of(const CheckpointRequest& request) const {
    return request.weights_only ? weights : weights + optimizer_state;
  }
};
ModelBytes model_bytes(const Replica& replica, const TrainingPlan& plan);

/// Writes a file of this rank, while so many ranks of its node write theirs.
Program write_file(Rank& rank, Bytes bytes, CheckpointRequest request, int32_t writers,
                   SiteId site);

/// Rank 0's file name becomes everybody's: strategy.broadcast(filepath).
Program send_path(Rank& rank, const CheckpointRequest& request, SiteId site);

/// A copy in host memory of what a checkpoint holds, from where it is written.
class HostCopy {
 public:
  /// Copies a slice of the first device; later work on the compute stream comes after it.
  void add(Rank& rank, const Slice& from, SiteId site);
  Bytes bytes() const { return bytes_; }
  /// The host waits for the copies.
  Program settle(Rank& rank);
  void release(Rank& rank);

 private:
  std::vector<Slice> slices_;
  Ticket last_{};
  Bytes bytes_{};
};

}  // namespace lockstep
