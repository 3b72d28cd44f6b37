#pragma once

#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/saved_tensor.hpp"

namespace lockstep {

class Replica;

/// The values of a whole replica, as a checkpoint of rank 0 holds them; empty where it carries
/// none. Its device must have come to rest.
std::vector<SavedTensor> saved_parameters(Rank& rank, Replica& replica);
std::vector<Values> saved_buffers(Rank& rank, Replica& replica);

/// Gives a replica that is at rest what a checkpoint holds. Optimizers get their state, as
/// load_state_dict makes it: also where nothing carries values.
void restore(Rank& rank, const std::vector<SavedTensor>& parameters,
             const std::vector<Values>& buffers, Replica& replica);

}  // namespace lockstep
