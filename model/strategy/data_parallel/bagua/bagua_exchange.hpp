#pragma once

#include "model/strategy/exchange/gradient_exchange.hpp"
#include "model/strategy/step_kinds.hpp"

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
  virtual bool counts_steps() const { return false; }
  virtual void add_step_kind(int64_t /*ahead*/, int64_t /*forwards*/,
                             std::vector<int64_t>& /*kind*/) const {}
  virtual void add_place(int64_t /*forwards*/, std::vector<int64_t>& /*place*/) const {}
  virtual int64_t steps_of_cycle(int64_t /*forwards*/) const { return 1; }
  virtual void leave_out(int64_t /*forwards*/) {}
  /// Whether training holds the lock of a thread that would change the weights.
  virtual bool holds_lock() const { return false; }
  /// The fit ends: frees what it has.
  virtual Program end(Rank& rank) = 0;
};

}  // namespace lockstep
