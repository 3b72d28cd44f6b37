#pragma once

#include "model/program/journal.hpp"

namespace lockstep {

/// A hash of all that races_of() goes by. Ranks whose hashes are equal have the same races: that
/// two of n different ranks have the same is as likely as n^2 / 2^65.
size_t order_digest(const Journal& journal, int32_t rank);

}  // namespace lockstep
