#include "cli/render/report/layer_times.hpp"

#include "model/network/network.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep::cli {

namespace {

bool is_forward(const Row& row) {
  return row.site == site_id(replica_sites::layer_forward) ||
         row.site == site_id(replica_sites::recompute) ||
         row.site == site_id(replica_sites::loss_forward);
}

bool is_of_loss(const Row& row) {
  return row.site == site_id(replica_sites::loss_forward) ||
         row.site == site_id(replica_sites::loss_backward);
}

bool is_backward(const Row& row) {
  return row.site == site_id(replica_sites::layer_backward) ||
         row.site == site_id(replica_sites::loss_backward);
}

}  // namespace

std::vector<LayerTime> layer_times(const OneRun& run, const DrawnSpan& span) {
  const Network* network = run.preparation.options.network;
  if (network == nullptr) {
    return {};
  }
  std::vector<LayerTime> times;
  for (const Layer& layer : network->layers) {
    times.push_back({layer.name, std::string(name_of(layer.kind)), layer.parameter_elements(),
                     layer.activation_bytes(run.preparation.plan.activation_dtype), Time{},
                     Time{}});
  }
  times.push_back({"loss", std::string(name_of(network->loss.kind)), 0,
                   network->loss.activation_bytes(run.preparation.plan.activation_dtype), Time{},
                   Time{}});
  const Journal& journal = *run.result.journal;
  for (int32_t number = 0; number < journal.lanes(0); ++number) {
    const LaneJournal& lane = journal.lane(0, number);
    lane.for_each([&](const Row& row) {
      const bool is_kernel = row.row == RowKind::op && row.kind == OpKind::compute;
      if (!is_kernel || (!is_forward(row) && !is_backward(row))) {
        return;
      }
      const Completion done = lane.completion(row.sequence);
      const auto layer = is_of_loss(row) ? times.size() - 1 : static_cast<size_t>(row.tag);
      if (done.outcome != Outcome::ok || done.start < span.begin || done.start >= span.end ||
          layer >= times.size()) {
        return;
      }
      (is_forward(row) ? times[layer].forward : times[layer].backward) += done.finish - done.start;
    });
  }
  std::erase_if(times, [](const LayerTime& layer) {
    return layer.forward == Time{} && layer.backward == Time{};
  });
  return times;
}

}  // namespace lockstep::cli
