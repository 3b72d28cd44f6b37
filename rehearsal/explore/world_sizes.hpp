#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

/// Settings that turn this training into one with a different number of ranks. The nodes keep their
/// GPUs and the cluster gets as many nodes as the ranks need. A bare program gets its ranks.
struct Resized {
  std::vector<std::string> settings;
  int64_t nodes = 1;    ///< of a trainer
  std::string why_not;  ///< empty: the settings do it
};
Resized resized_to(const Rehearsal& rehearsal, int64_t ranks);

/// Horovod asks its launcher, not the Trainer, how many processes there are.
bool is_sized_by_launcher(const Rehearsal& rehearsal);

/// Explores the numbers of ranks of `verify.world_sizes` beside the scenario's own. A size that
/// cannot be looked at leaves the answer undecided and says why.
void explore_world_sizes(const CaseSource& source, const RehearseRequest& request,
                         Rehearsal& rehearsal);

}  // namespace lockstep::cli
