#pragma once

#include "model/core/site.hpp"
#include "properties/diagnosis/calls.hpp"

namespace lockstep {

/// Whether two sites are in the two branches of one `if`.
bool are_ways(const Site* a, const Site* b);

/// Whether the two ways of one `if` begin with these two different calls and each holds the other
/// one too, reached or not: a rank that waits in the first never comes to the second.
bool ways_exchange(const Sites& sites, SiteId left, SiteId right);

/// Identifies a call: statement kind and data if the statement names its data, else the
/// statement. Ranks that reduce `x` in two statements mean the same call.
uint64_t meaning_of(const Sites& sites, const Call& call);

/// Orders two parts of one statement: negative if the left one is first; 0 if there is no order.
int order_of(const Sites& sites, SiteId left, SiteId right);

}  // namespace lockstep
