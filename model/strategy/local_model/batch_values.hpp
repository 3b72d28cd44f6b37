#pragma once

#include "model/core/values.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// The values that the samples have: those that the scenario gives, else small whole numbers or
/// class indices, a pure function of seed and index, so that every world and every sharding sees
/// the same data. With modules, of the one that runs first, and of the one that runs last.
Values batch_inputs(const TrainingPlan& plan, const Batch& batch, size_t module = 0);
Values batch_targets(const TrainingPlan& plan, const Batch& batch, size_t module = 0);
/// Tokens that an integer input may hold, from 0: rows of the module's first embedding.
uint64_t tokens_of(const Network& network, size_t module);

}  // namespace lockstep
