#include "model/strategy/strategy.hpp"

namespace lockstep {

Program Strategy::join(Rank&) { co_return; }

Program Strategy::teardown(Rank&) { co_return; }

Replica& Strategy::copy(size_t) { return replica(); }

Slice Strategy::loss_of(size_t) const { return loss(); }

}  // namespace lockstep
