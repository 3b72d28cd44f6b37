#pragma once

#include <span>
#include <vector>

#include "model/strategy/local_model/expert_rows.hpp"

namespace lockstep {

/// Mixtures of experts that ranks divide: tokens travel to their experts and back by all_to_all, as
/// ExpertParallel of torchtitan lets them. Where ranks compute an expert together, as in
/// Megatron-LM, each gathers the rows of all of them, and what they give is added up.
class DividedExperts : ForwardPart {
 public:
  using ForwardPart::ForwardPart;

  /// Before the layer's forward: sends the others how many rows they will get.
  Ticket announce_tokens(Rank& rank, size_t layer);
  void forward(Rank& rank, const LayerRun& run, const LayerTurn& turn, const Slice& output,
               RoutedTokens& routing);
  Ticket backward(Rank& rank, const LayerRun& run, const std::vector<Slice>& gradients);

 private:
  struct RowGradients;
  ExpertRun& experts_of(size_t layer);
  KernelCall backward_part(const LayerRun& run, std::span<const double> scalars) const;
  void backward_of_combination(Rank& rank, const LayerRun& run, const RowGradients& gradients);
  Ticket backward_of_computation(Rank& rank, const LayerRun& run, const RowGradients& rows,
                                 const std::vector<Slice>& gradients);
  Ticket backward_of_routing(Rank& rank, const LayerRun& run, const RowGradients& rows,
                             const Slice& router_gradient);
};

}  // namespace lockstep
