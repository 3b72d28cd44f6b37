#pragma once

#include <cstdint>

#include "model/network/tensor_parallel/cut_network.hpp"

namespace lockstep {

/// How Megatron-LM divides the experts of each mixture among ranks.
struct ExpertPart {
  int32_t ranks = 1;         ///< of which each has some experts (expert_model_parallel_size)
  int32_t tensor_ranks = 1;  ///< that compute each of them together, by its hidden features
  int32_t all_ranks() const { return ranks * tensor_ranks; }
};

/// What each of these ranks has of `network`, whose other layers are cut already: the router whole,
/// and a part of the grouped weights of the experts.
CutNetwork cut_by_experts(const Network& network, const ExpertPart& part);

}  // namespace lockstep
