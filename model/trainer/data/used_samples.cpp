#include "model/trainer/data/used_samples.hpp"

namespace lockstep {

int64_t UsedSamples::size() const {
  return batches_ ? batches_->samples_of(count_) : static_cast<int64_t>(listed_.size());
}

std::vector<int64_t> UsedSamples::list() const {
  return batches_ ? batches_->list(count_, true) : listed_;
}

std::vector<int64_t> UsedSamples::list_unshuffled() const {
  return batches_ ? batches_->list(count_, false) : listed_;
}

UsedSamples UsedSamples::of_replica(int64_t index) const {
  UsedSamples other = *this;
  if (other.batches_) {
    other.batches_ = batches_->of_replica(index);
  }
  return other;
}

std::optional<Sampler::Options> UsedSamples::turns() const {
  return batches_ ? batches_->turns() : std::nullopt;
}

}  // namespace lockstep
