#include "model/strategy/known_exceptions.hpp"

#include <algorithm>
#include <iterator>

#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded_sites.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"

namespace lockstep {

namespace {

constexpr KnownException exceptions_with_fix[] = {
    {fsdp_sites::shared_weight, wrapping_code,
     "wrap a module that holds both layers, or neither of them, so that they are in one unit"},
    {fully_sharded_sites::second_forward, wrapping_code,
     "write checkpoint: fairscale, which is fairscale.nn.checkpoint_wrapper"},
    {fully_sharded_sites::freed_unit, wrapping_code,
     "make every checkpointed module a unit of its own: wrap(checkpoint_wrapper(module))"},
    {horovod_sites::take_state, "LS104",
     "give the optimizers of all ranks the same parameters to train: hvd.broadcast_optimizer_state "
     "looks every entry of rank 0's state up in the rank's own"},
};

}  // namespace

const KnownException* known_exception(SiteId site) {
  const auto* const found = std::ranges::find_if(
      exceptions_with_fix,
      [site](const KnownException& each) { return site_id(each.site) == site; });
  return found == std::end(exceptions_with_fix) ? nullptr : found;
}

}  // namespace lockstep
