#pragma once

#include "model/program/rank.hpp"

namespace lockstep {

/// How the gradients of a replica reach whoever updates the parameters, while its backward runs:
/// what strategies with whole parameters on every rank differ in. One object per rank.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  /// A backward begins. `synchronise`: its gradients are exchanged; else they stay on this rank.
  virtual void begin(Rank& rank, bool synchronise) = 0;
  /// The gradients of a layer are there, once `done`: no later part of this backward adds to them.
  virtual void gradients_ready(Rank& rank, size_t layer, Ticket done) = 0;
  /// The backward has ended. Later work on the compute stream sees what was exchanged.
  virtual Program finish(Rank& rank) = 0;
  /// The host waits until the exchange of the last backward has ended on the device.
  virtual Program settle(Rank& rank) = 0;
  /// Gradients of the replica became None.
  virtual void gradients_forgotten(Rank& /*rank*/) {}
  /// Bytes of each call since the last question, for transfers.LABEL.
  virtual std::vector<Bytes> take_exchanged_bytes() = 0;
};

}  // namespace lockstep
