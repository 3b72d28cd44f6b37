#include "model/strategy/sharded/zero_redundancy.hpp"

#include <algorithm>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/exchange/object_exchange.hpp"
#include "model/strategy/layout/parameter_owners.hpp"
#include "model/strategy/sharded/zero_redundancy_sites.hpp"

namespace lockstep {

using namespace zero_redundancy_sites;

namespace {
constexpr std::string_view parameters_sent = "parameters_sent";
}

ZeroRedundancyUpdate::ZeroRedundancyUpdate(Replica& replica, size_t optimizer, int32_t ranks)
    : replica_(&replica),
      optimizer_(optimizer),
      owners_(replica.parameters().size(), -1),
      owned_(static_cast<size_t>(ranks)) {
  std::vector<size_t> held;
  std::vector<OwnedSize> sizes;
  for (size_t index = 0; index < replica.parameters().size(); ++index) {
    const Replica::Parameter& parameter = replica.parameters()[index];
    if (holds(index)) {
      held.push_back(index);
      sizes.push_back({replica.network().parameter(parameter.place).elements(), true});
    }
  }
  const std::vector<int32_t> owners = owners_largest_first(sizes, ranks);
  for (size_t i = 0; i < held.size(); ++i) {
    owners_[held[i]] = owners[i];
    owned_[static_cast<size_t>(owners[i])].push_back(held[i]);
  }
  for (std::vector<size_t>& parameters : owned_) {
    std::stable_sort(parameters.begin(), parameters.end(), [&](size_t a, size_t b) {
      const auto elements = [&](size_t index) {
        return replica.network().parameter(replica.parameters()[index].place).elements();
      };
      return elements(a) > elements(b);
    });
  }
}

bool ZeroRedundancyUpdate::holds(size_t parameter) const {
  const Replica::Parameter& each = replica_->parameters()[parameter];
  return each.trainable && replica_->plan().optimizers[optimizer_].holds(each.place.layer);
}

bool ZeroRedundancyUpdate::has_buckets() const {
  return replica_->plan().optimizers[optimizer_].sharding ==
         OptimizerPlan::Sharding::zero_redundancy_in_buckets;
}

void ZeroRedundancyUpdate::allocate_pieces(Rank& rank, std::vector<Slice>& parameters) const {
  const auto elements_of = [&](size_t index) {
    return replica_->network().parameter(replica_->parameters()[index].place).elements();
  };
  for (const std::vector<size_t>& owned : owned_) {
    int64_t all = 0;
    for (const size_t index : owned) {
      all += elements_of(index);
    }
    if (owned.empty()) {
      continue;
    }
    const Slice piece = rank.allocate(Purpose::parameter, replica_->plan().parameter_dtype, all);
    int64_t begin = 0;
    for (const size_t index : owned) {
      parameters[index] = piece.part(begin, elements_of(index));
      begin += elements_of(index);
    }
  }
}

// All gradients are there, so that clipping by norm is local.
void ZeroRedundancyUpdate::step(Rank& rank, const UpdateOptions& options, Transfers& transfers) {
  OwnedStep owned;
  for (const int32_t owner : owners_) {
    owned.owns.push_back(owner == rank.id());
  }
  replica_->optimizer_step(rank, options, site_id(zero_redundancy_sites::update), &owned);
  const SiteId site = site_id(send_parameters);
  const Ticket updated = rank.event({compute_stream, {}, site});
  Ticket last{};
  const auto send = [&](const Slice& data, size_t owner) {
    last = rank.broadcast(world_group, data, static_cast<int32_t>(owner),
                          {communication_stream, {updated}, site});
    transfers.add(parameters_sent, data.bytes());
  };
  for (size_t owner = 0; owner < owned_.size(); ++owner) {
    if (!has_buckets()) {
      for (const size_t index : owned_[owner]) {
        send(replica_->parameters()[index].tensor.value, owner);
      }
      continue;
    }
    std::vector<Slice> values;
    for (const size_t index : owned_[owner]) {
      values.push_back(replica_->parameters()[index].tensor.value);
    }
    if (!values.empty()) {
      send(values.front().part(0, total_elements(values)), owner);
    } else {  // a rank that owns nothing has a bucket of one element
      const Slice nothing = rank.allocate(Purpose::communication, replica_->plan().parameter_dtype,
                                          1, DeviceId{0}, queue::communication);
      send(nothing, owner);
      rank.release(nothing);
    }
  }
  rank.event({compute_stream, {last}, site});
}

// A state_dict as it is pickled: its numbers, and beside them about as much as PyTorch 2.11 writes
// for the options and for each tensor, Adam's counters among them.
Bytes ZeroRedundancyUpdate::state_bytes_of(int32_t owner) const {
  constexpr Bytes options(1668);
  constexpr Bytes beside_tensor(224);
  Bytes bytes{};
  for (const size_t index : owned_[static_cast<size_t>(owner)]) {
    bytes += replica_->parameters()[index].tensor.value.bytes();
  }
  const OptimizerPlan& optimizer = replica_->plan().optimizers[optimizer_];
  const int tensors = state_tensors(optimizer);
  const int counters = rule_of(optimizer.kind).counters();
  const auto owned = static_cast<int64_t>(owned_[static_cast<size_t>(owner)].size());
  return options + beside_tensor * (owned * (tensors + counters)) + bytes * tensors;
}

Program ZeroRedundancyUpdate::gather_state(Rank& rank) {
  for (int32_t owner = 1; owner < rank.world_size(); ++owner) {
    const Bytes size = state_bytes_of(owner);
    co_await broadcast_pickled(
        rank, {world_group, rank.world_size(), owner, site_id(send_optimizer)}, size);
  }
}

}  // namespace lockstep
