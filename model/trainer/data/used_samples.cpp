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

}  // namespace lockstep
