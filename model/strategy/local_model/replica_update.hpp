#pragma once

#include <optional>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/local_model/gradient_clipping.hpp"
#include "model/strategy/local_model/replica_state.hpp"
#include "model/strategy/update_options.hpp"

namespace lockstep {

/// Which parameters a rank updates where others update the rest.
struct OwnedStep {
  std::vector<bool> owns;            ///< by parameter
  std::vector<bool> counts{};        ///< whose squares enter the norm here; empty: as `owns`
  std::optional<SharedNorm> norm{};  ///< clipping by norm counts those of all ranks, each once
};

/// The steps of a replica's optimizers.
class ReplicaUpdate {
 public:
  explicit ReplicaUpdate(ReplicaState& state) : state_(state) {}

  /// Gradients that the optimizer's step reads; of those that `owned` names where their norm is
  /// shared.
  std::vector<Slice> gradients_of(size_t optimizer, const OwnedStep* owned) const;
  /// Clips them.
  void clip(Rank& rank, const UpdateOptions& options, const OwnedStep* owned);
  /// Clips the gradients of the optimizer's parameters and updates these, or those of them that
  /// `owned` names.
  Ticket step(Rank& rank, const UpdateOptions& options, SiteId site, const OwnedStep* owned);
  /// set_to_none makes the gradients of the optimizer's parameters None; else those that exist are
  /// filled with 0.
  void zero_gradients(Rank& rank, size_t optimizer, bool set_to_none);

 private:
  ReplicaState& state_;
};

}  // namespace lockstep
