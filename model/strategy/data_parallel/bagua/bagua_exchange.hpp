#pragma once

#include "model/strategy/exchange/gradient_exchange.hpp"
#include "model/strategy/steps_alike.hpp"

namespace lockstep {

/// What an algorithm of Bagua does between the ranks of a fit.
class BaguaExchange : public GradientExchange {
 public:
  /// The algorithm begins: parameters and optimizer state are everybody's.
  virtual void prepare(Rank& rank) = 0;
  /// Before a forward through the wrapper.
  virtual Program forward_begins(Rank& rank, bool training);
  /// An optimizer has updated its parameters.
  virtual Program step_taken(Rank& rank, size_t optimizer);
  /// As of a Strategy.
  virtual int64_t steps_alike(int64_t /*forwards*/) const { return all_steps; }
  virtual int64_t steps_of_cycle(int64_t /*forwards*/) const { return 1; }
  virtual void leave_out(int64_t /*forwards*/) {}
  /// The fit ends: frees what it has.
  virtual Program end(Rank& rank) = 0;
};

}  // namespace lockstep
