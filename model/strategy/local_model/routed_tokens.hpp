#pragma once

#include <vector>

#include "model/strategy/local_model/expert_load.hpp"
#include "model/strategy/local_model/forward_record.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// Which experts of a replica's mixtures get tokens.
class RoutedTokens {
 public:
  explicit RoutedTokens(const TrainingPlan& plan);

  /// Whether the values of a forward decide which experts of a mixture get tokens.
  bool routes_tokens() const { return routes_tokens_; }
  /// Memory for the choices of this forward, where its layer counts them.
  std::optional<Slice> begin_counting(Rank& rank, ForwardRecord& forward, size_t layer,
                                      const LayerTurn& turn) const;
  /// The forward has ended: reads which experts got tokens. One with parameters of its own that got
  /// none is no part of autograd's graph: its gradients stay as they were.
  void read(Rank& rank, ForwardRecord& forward);
  /// Adds to what fell on each expert before. The capacity is that of this batch on this rank.
  void note_load(const ForwardRecord& forward, size_t layer, const Values& choices);
  /// Of all forwards of trainings so far.
  const std::vector<ExpertLoad>& loads() const { return loads_; }

 private:
  const Network* network_;
  bool routes_tokens_;
  std::vector<ExpertLoad> loads_;
};

}  // namespace lockstep
