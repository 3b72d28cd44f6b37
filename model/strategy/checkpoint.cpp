#include "model/strategy/checkpoint.hpp"

#include "model/strategy/exchange/object_exchange.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

ModelBytes model_bytes(const Replica& replica, const TrainingPlan& plan) {
  ModelBytes bytes;
  for (const Replica::Parameter& parameter : replica.parameters()) {
    const ParameterTensor& tensor = replica.network().parameter(parameter.place);
    const Bytes values = Bytes(size_of(plan.parameter_dtype)) * tensor.elements();
    bytes.weights += values;
    bytes.frozen += parameter.trainable ? Bytes{} : values;
    for (const OptimizerPlan& optimizer : plan.optimizers) {
      if (parameter.trainable && optimizer.holds(parameter.place.layer)) {
        bytes.optimizer_state +=
            Bytes(size_of(plan.parameter_dtype)) * state_elements(optimizer, tensor.shape);
      }
    }
  }
  for (const Replica::Buffer& buffer : replica.buffers()) {
    bytes.weights += buffer.value.bytes();
  }
  return bytes;
}

Program write_file(Rank& rank, Bytes bytes, CheckpointRequest request, int32_t writers,
                   SiteId site) {
  if (request.disk.count() > 0 && bytes > Bytes{}) {
    const Ticket written = rank.host(bytes * writers / request.disk, site);
    co_await rank.settle(written);
  }
}

Program send_path(Rank& rank, const CheckpointRequest& request, SiteId site) {
  return broadcast_pickled(rank, {world_group, rank.world_size(), 0, site}, request.path);
}

void HostCopy::add(Rank& rank, const Slice& from, SiteId site) {
  const Slice to = rank.allocate(Purpose::workspace, from.dtype, from.elements, host_device);
  const Ticket made = rank.event({compute_stream, {}, site});
  last_ = rank.copy(from, to, {copy_stream, {made}, site});
  rank.event({compute_stream, {last_}, site});
  slices_.push_back(to);
  bytes_ += to.bytes();
}

Program HostCopy::settle(Rank& rank) {
  if (last_) {
    co_await rank.settle(last_);
  }
}

void HostCopy::release(Rank& rank) {
  for (const Slice& slice : slices_) {
    rank.release(slice);
  }
  slices_.clear();
}

}  // namespace lockstep
