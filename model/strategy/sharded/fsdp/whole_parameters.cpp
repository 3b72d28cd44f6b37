#include "model/strategy/sharded/fsdp/whole_parameters.hpp"

#include <algorithm>
#include <utility>

#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

size_t WholeParameters::number_of(size_t parameter) const {
  const auto found = std::ranges::find(parameters_, parameter);
  return static_cast<size_t>(found - parameters_.begin());
}

const Slice& WholeParameters::gradient(size_t number) const {
  const bool is_kept = number < kept_.size() && kept_[number].buffer != no_buffer;
  return is_kept ? kept_[number] : (*this)[number].tensor.gradient;
}

bool WholeParameters::has_gradients() const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (gradient(i).buffer != no_buffer) {
      return true;
    }
  }
  return false;
}

bool WholeParameters::keeps_gradients() const {
  return std::ranges::any_of(kept_, [](const Slice& kept) { return kept.buffer != no_buffer; });
}

void WholeParameters::keep_gradients(Rank& rank, DType type, SiteId site) {
  kept_.resize(parameters_.size());
  std::vector<Slice> fresh;
  std::vector<Slice> fresh_to;
  std::vector<Slice> added;
  std::vector<Slice> added_to;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Slice& last = (*this)[i].tensor.gradient;
    if (last.buffer == no_buffer) {
      continue;
    }
    const bool is_fresh = kept_[i].buffer == no_buffer;
    if (is_fresh) {
      kept_[i] = rank.allocate(Purpose::gradient, type, last.elements);
    }
    (is_fresh ? fresh : added).push_back(last);
    (is_fresh ? fresh_to : added_to).push_back(kept_[i]);
  }
  if (!fresh.empty()) {
    elementwise(rank, Kernel::cast, fresh, fresh_to, 0, {compute_stream, {}, site});
  }
  if (!added.empty()) {
    elementwise(rank, Kernel::add_scaled, added, added_to, 1, {compute_stream, {}, site});
  }
  forget_last_gradients(rank);
}

void WholeParameters::forget_gradients(Rank& rank) {
  for (Slice& kept : kept_) {
    if (kept.buffer != no_buffer) {
      rank.release(std::exchange(kept, Slice{}));
    }
  }
  forget_last_gradients(rank);
}

void WholeParameters::forget_last_gradients(Rank& rank) {
  for (const size_t index : parameters_) {
    replica_->forget_gradient(rank, replica_->parameters()[index]);
  }
}

}  // namespace lockstep
