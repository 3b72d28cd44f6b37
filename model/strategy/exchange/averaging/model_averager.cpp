#include "model/strategy/exchange/averaging/model_averager.hpp"

#include "model/strategy/exchange/averaging/hierarchical_averager.hpp"
#include "model/strategy/exchange/averaging/outer_optimizer.hpp"
#include "model/strategy/exchange/averaging/periodic_averager.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/exchange/hooks/hook_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

Program ModelAverager::begin(Rank&) { co_return; }

std::vector<Slice> ModelAverager::parameters_of(size_t optimizer, bool with_gradients) const {
  std::vector<Slice> values;
  for (const Replica::Parameter& parameter : replica_->parameters()) {
    if (parameter.trainable &&
        replica_->plan().optimizers[optimizer].holds(parameter.place.layer) &&
        (!with_gradients || parameter.tensor.gradient.buffer != no_buffer)) {
      values.push_back(parameter.tensor.value);
    }
  }
  return values;
}

// model_averaging/utils.py, average_parameters.
Task<Bytes> ModelAverager::replace_by_mean(Rank& rank, const std::vector<Slice>& values,
                                           GroupId group, int64_t ranks) {
  const SiteId site = site_id(hook_sites::average_model);
  if (values.empty()) {
    throw ProgramException(site,
                           "torch.cat(): expected a non-empty list of Tensors: no parameter has a "
                           "gradient, so that there is nothing to average");
  }
  const Slice flat =
      rank.allocate(Purpose::communication, values.front().dtype, total_elements(values));
  copy_each(rank, values, parts_of(flat, values), {replica_->compute(), {}, site});
  // torch synchronises the device, so that this call meets none of another group.
  const Ticket divided =
      elementwise(rank, Kernel::scale, {}, {flat}, 1.0 / static_cast<double>(ranks), {}, site);
  co_await rank.settle(divided);
  const Ticket reduced =
      rank.all_reduce(group, flat, Reduction::sum, {communication_stream, {divided}, site});
  copy_each(rank, parts_of(flat, values), values, {replica_->compute(), {reduced}, site});
  rank.release(flat);
  co_return flat.bytes();
}

std::unique_ptr<ModelAverager> make_model_averager(Replica& replica,
                                                   const AveragingOptions& options) {
  if (options.outer) {
    return std::make_unique<OuterOptimizer>(replica, *options.outer, options.period.value_or(1),
                                            options.warmup_steps);
  }
  if (!options.levels.empty()) {
    return std::make_unique<HierarchicalModelAverager>(replica, options.levels,
                                                       options.warmup_steps);
  }
  return options.period ? std::make_unique<PeriodicModelAverager>(replica, *options.period,
                                                                  options.warmup_steps)
                        : nullptr;
}

}  // namespace lockstep
