#pragma once

#include "model/strategy/strategy.hpp"

namespace lockstep {

/// Common base of strategies with a single process and any number of devices: there
/// is nobody to agree with, and a gather gives what was put in.
class OneProcessStrategy : public Strategy {
 public:
  Program reduce(Rank&, Slice, Reduction, SiteId) override { co_return; }
  Program barrier(Rank&, SiteId) override { co_return; }
  Program broadcast(Rank&, Slice, int32_t, SiteId) override { co_return; }
  Program all_gather(Rank& rank, Slice part, Slice whole, SiteId site) override;
};

}  // namespace lockstep
