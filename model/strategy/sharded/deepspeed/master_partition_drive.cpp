// A partition on the drive: gradients go there as they are reduced, and a step brings one group of
// parameters after the other to host memory.
#include <algorithm>
#include <utility>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/deepspeed/master_partition.hpp"

namespace lockstep {

void MasterPartition::use_drive(const DriveOptions& options, std::vector<SubGroup> groups) {
  groups_ = std::move(groups);
  swapper_.emplace(options, replica_->plan().optimizers.front(), groups_);
}

// Groups that are too small for the drive stay in host memory.
void MasterPartition::allocate_on_drive(Rank& rank) {
  swapper_->allocate(rank);
  int64_t small = 0;
  for (size_t group = 0; group < groups_.size(); ++group) {
    small += swapper_->is_on_drive(group) ? 0 : groups_[group].elements;
  }
  if (small > 0) {
    master_ = rank.allocate(Purpose::parameter, DType::fp32, small, device_);
  }
  int64_t begin = 0;
  for (size_t group = 0; group < groups_.size(); ++group) {
    const int64_t elements = groups_[group].elements;
    const bool on_drive = swapper_->is_on_drive(group);
    homes_.push_back({groups_[group].begin,
                      on_drive ? swapper_->master_of(group) : master_.part(begin, elements)});
    begin += on_drive ? 0 : elements;
  }
}

// In host memory gradients have the model's type; what is added to them crosses to the device and
// back. The last of a window goes on to the drive, in full precision.
void MasterPartition::cross_to_drive(Rank& rank, const Slice& part, int64_t position, bool adds,
                                     SiteId site) {
  const Slice kept = gradient_.part(position, part.elements);
  Slice sum = part;
  if (adds) {
    sum = rank.allocate(Purpose::workspace, part.dtype, part.elements);
    const Ticket there = rank.event({stream_of_update(), {}, site});
    const Ticket back = rank.copy(kept, sum, {copy_stream, {there}, site});
    rank.event({compute_stream, {back}, site});
    elementwise(rank, Kernel::add, {part}, {sum}, 0, {compute_stream, {}, site});
  }
  const Ticket made = rank.event({compute_stream, {}, site});
  const Ticket before = rank.event({stream_of_update(), {}, site});
  const Ticket crossed = rank.copy(sum, kept, {copy_stream, {made, before}, site});
  rank.event({compute_stream, {crossed}, site});
  rank.event({stream_of_update(), {crossed}, site});
  if (at_boundary_) {
    const Slice wide = rank.allocate(Purpose::gradient, DType::fp32, sum.elements);
    const bool converts = sum.dtype != DType::fp32;
    elementwise(rank, converts ? Kernel::cast : Kernel::copy, {sum}, {wide}, 0,
                {compute_stream, {}, site});
    swapper_->put_gradient(rank, wide, position, site);
  }
  if (adds) {
    rank.release(sum);
  }
}

std::vector<MasterPartition::Piece*> MasterPartition::pieces_of(size_t group) {
  const SubGroup& range = groups_[group];
  std::vector<Piece*> found;
  for (Piece& piece : pieces_) {
    if (range.begin <= piece.position && piece.position < range.begin + range.elements) {
      found.push_back(&piece);
    }
  }
  return found;
}

/// A group during its update.
struct MasterPartition::InMemory {
  Slice master;
  Slice gradient;
  bool was_on_drive = false;
  bool has_state = false;
};

MasterPartition::InMemory MasterPartition::bring(Rank& rank, const Step& step, size_t group) {
  const SubGroup& range = groups_[group];
  const SiteId site = step.update_site;
  InMemory here;
  if (!swapper_->is_on_drive(group)) {
    here.master = homes_[group].slice;
    here.gradient = rank.allocate(Purpose::gradient, DType::fp32, range.elements, device_);
    const bool converts = gradient_.dtype != DType::fp32;
    elementwise(rank, converts ? Kernel::cast : Kernel::copy,
                {gradient_.part(range.begin, range.elements)}, {here.gradient}, 0,
                {stream_of_update(), {}, site});
    return here;
  }
  const OptimizerSwapper::Present present = swapper_->swap_in(rank, group, site);
  here = {present.master, present.gradient, true, !present.state.empty()};
  for (const auto& [position, elements] : present.missing) {
    // No loss has used it since the last step: what host memory has of it.
    const bool converts = gradient_.dtype != DType::fp32;
    elementwise(rank, converts ? Kernel::cast : Kernel::copy,
                {gradient_.part(range.begin + position, elements)},
                {present.gradient.part(position, elements)}, 0, {stream_of_update(), {}, site});
  }
  for (Piece* piece : pieces_of(group)) {
    const int64_t position = piece->position - range.begin;
    const int64_t elements = piece->tensor.value.elements;
    piece->tensor.value = present.master.part(position, elements);
    for (const Slice& state : present.state) {
      piece->tensor.state.push_back(state.part(position, elements));
    }
  }
  return here;
}

void MasterPartition::step_group(Rank& rank, const Step& step, const InMemory& here, size_t group) {
  if (here.gradient.buffer == no_buffer) {
    return;
  }
  const OptimizerPlan optimizer =
      scheduled(replica_->plan().optimizers[step.options.optimizer], step.options);
  scale(rank, step, here.gradient);
  clip(rank, step, here.gradient);
  std::vector<OptimizedTensor*> tensors;
  for (Piece* piece : pieces_of(group)) {
    const int64_t position = piece->position - groups_[group].begin;
    piece->tensor.gradient = here.gradient.part(position, piece->tensor.value.elements);
    tensors.push_back(&piece->tensor);
  }
  lockstep::optimizer_step(rank, optimizer, kernels_of(replica_->plan()), tensors,
                           {stream_of_update(), {norm_ready_}, step.update_site});
  for (OptimizedTensor* tensor : tensors) {
    tensor->gradient = Slice{};
  }
}

void MasterPartition::put_away(Rank& rank, const Step& step, const InMemory& here, size_t group) {
  if (!here.was_on_drive) {
    rank.release(here.gradient);
    return;
  }
  const SubGroup& range = groups_[group];
  std::vector<OptimizerSwapper::MadeState> made;
  for (Piece* piece : pieces_of(group)) {
    const int64_t position = piece->position - range.begin;
    std::vector<Slice> state = std::exchange(piece->tensor.state, {});
    if (!here.has_state && !state.empty()) {
      made.push_back({position, std::move(state)});
    }
    piece->tensor.value = homes_[group].slice.part(position, piece->tensor.value.elements);
  }
  swapper_->swap_out(rank, group, made, step.update_site);
}

void MasterPartition::update_on_drive(Rank& rank, const Step& step, const PassOn& pass_on) {
  rank.event({stream_of_update(), {norm_ready_}, step.update_site});
  for (size_t group = 0; has_gradients() && group < groups_.size(); ++group) {
    const InMemory here = bring(rank, step, group);
    step_group(rank, step, here, group);
    pass_on(here.master, groups_[group].begin);
    put_away(rank, step, here, group);
  }
  end_step(rank);
}

}  // namespace lockstep
