#pragma once

#include <string>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// The rank whose device holds most at its peak; null: there are no results of ranks.
const RankResults* fullest_rank(const Rehearsal& rehearsal);

/// The most that a rank holds in host memory, of all ranks: a checkpoint may be gathered to one.
Bytes most_on_host(const Rehearsal& rehearsal);

/// What a table says in place of figures: "refused, LS501", "does not fit: 99.2 GiB of 80.0 GiB".
/// Empty: the case came to its end, and its figures are a prediction.
std::string verdict_on(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
