#pragma once

#include <cstdint>

#include "model/program/rank.hpp"
#include "model/strategy/local_model/gradient_clipping.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// Where a rank stands in a device mesh of two dimensions, (data_parallel, tensor_parallel): ranks
/// that compute one replica together are neighbours.
struct TensorMesh {
  TensorRanks tensor{};  ///< those with whom it computes
  int32_t first_tensor_rank = 0;
  GroupId data{};  ///< those that hold the same parts; none where there is one replica
  int32_t data_ranks = 1;
  int32_t data_index = 0;
};

/// init_device_mesh: the groups of the first dimension, then those of the second. A collective of
/// all ranks, each of which makes all groups; a dimension of all ranks is the world itself.
Task<TensorMesh> make_tensor_mesh(Rank& rank, int32_t tensor_ranks);

/// Of gradients of which each rank has a term (those of norms under SequenceParallel) the terms
/// become their sum on all of them: DTensor's Partial becomes Replicate. `parameters`: indices into
/// those of the replica.
bool has_partial_gradient(const Replica& replica, size_t parameter);
void sum_partial_gradients(Rank& rank, const Replica& replica, const TensorRanks& ranks,
                           const std::vector<size_t>& parameters, Ticket after);

/// Whether this rank's squares of the parameter's gradient enter a norm over all ranks: what every
/// rank holds alike is counted on the first alone.
bool counts_in_norm(const Replica& replica, const TensorRanks& ranks, size_t parameter);

/// Whether parallelize_module has made the parameter a DTensor of the ranks' mesh: it is in the
/// plan.
bool is_in_plan(const Replica& replica, size_t parameter);

/// Throws what the optimizer raises in its step for this parameter, which is a DTensor.
void check_distributed(const OptimizerPlan& optimizer, const Replica& replica, size_t parameter,
                       SiteId site);

/// Of which kinds the parameters are whose gradients clip_grad_norm_ gets. Of both it takes no
/// norm.
enum class PlanCoverage : uint8_t { none, some, all };
PlanCoverage plan_coverage(const Replica& replica, const std::vector<size_t>& parameters);
/// What adds up over these ranks of a norm of the parameters `given`, whose gradients these are:
/// one number for each of `elements`, where they are in the plan; else each rank counts all of
/// them. Throws what torch raises where only some are.
void sum_across_plan(SharedNorm& norm, const Replica& replica, const TensorRanks& ranks,
                     const std::vector<size_t>& given, const std::vector<Slice>& gradients,
                     int64_t elements, SiteId site);

/// What parallelize_module does with the parameters of modules in the plan: the first rank sends
/// each its part of those that are cut, and everybody the biases of row-parallel layers. Those of
/// SequenceParallel stay as they are.
Program distribute_parameters(Rank& rank, const Replica& replica, const TensorMesh& mesh);

}  // namespace lockstep
