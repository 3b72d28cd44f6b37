#include "model/strategy/pipeline/weight_versions.hpp"

#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"

namespace lockstep {

namespace {

std::vector<Slice*> changing_values(Replica& replica) {
  std::vector<Slice*> values;
  for (size_t index = 0; index < replica.parameters().size(); ++index) {
    Replica::Parameter& parameter = replica.parameters()[index];
    if (replica.holds(index) && parameter.trainable) {
      values.push_back(&parameter.tensor.value);
    }
  }
  return values;
}

}  // namespace

// What a backward will read keeps its memory: autograd refuses to go through a weight that has
// changed since its forward.
void WeightVersions::begin_update(Rank& rank, Replica& replica, bool keeps) {
  ensure(turned_to_ == nullptr, "an update of the newest version");
  const std::vector<Slice*> values = changing_values(replica);
  if (keeps && !values.empty()) {
    Version old{newest_, {}};
    std::vector<Slice> copies;
    for (Slice* value : values) {
      old.values.push_back(*value);
      *value = rank.allocate(Purpose::parameter, value->dtype, value->elements, replica.device());
      copies.push_back(*value);
    }
    elementwise(rank, Kernel::copy, old.values, copies, 0,
                {replica.compute(), {}, site_id(pipeline_sites::stash_weights)});
    kept_.push_back(std::move(old));
  }
  ++newest_;
}

void WeightVersions::forget_before(Rank& rank, int64_t oldest) {
  while (!kept_.empty() && kept_.front().number < oldest) {
    for (const Slice& value : kept_.front().values) {
      rank.release(value);
    }
    kept_.pop_front();
  }
}

void WeightVersions::turn_to(Replica& replica, int64_t version) {
  const auto kept = std::ranges::find(kept_, version, &Version::number);
  turned_to_ = kept == kept_.end() ? nullptr : &*kept;
  exchange(replica);
}

void WeightVersions::turn_back(Replica& replica) {
  exchange(replica);
  turned_to_ = nullptr;
}

void WeightVersions::exchange(Replica& replica) {
  if (turned_to_ == nullptr) {
    return;
  }
  const std::vector<Slice*> values = changing_values(replica);
  for (size_t i = 0; i < values.size(); ++i) {
    std::swap(*values[i], turned_to_->values[i]);
  }
}

}  // namespace lockstep
