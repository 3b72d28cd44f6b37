#include "rehearsal/measure/activity.hpp"

#include "model/strategy/local_model/replica_sites.hpp"
#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

std::optional<Activity::Kind> activity_of(const Row& row) {
  if (row.row != RowKind::op || row.kind == OpKind::event) {
    return std::nullopt;
  }
  if (moves_between_gpus(row)) {
    return Activity::communication;
  }
  if (row.stream.device() == drive_device) {
    return Activity::drive;
  }
  const bool brings_batch =
      row.stream.queue() == queue::data || row.site == site_id(replica_sites::bring_batch);
  if (row.kind == OpKind::copy || brings_batch) {
    return brings_batch ? Activity::prepared : Activity::offload;
  }
  if (row.kind == OpKind::host) {
    return row.site == data_loading_site ? Activity::loading : Activity::host;
  }
  if (row.stream.device() == host_device) {
    return is_optimizer(row) ? Activity::optimizer_on_host : Activity::host;
  }
  return is_optimizer(row) ? Activity::optimizer : Activity::compute;
}

}  // namespace lockstep::cli
