#include "model/strategy/sharded/deepspeed/master_partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/norm_of_own_part.hpp"

namespace lockstep {

MasterPartition::MasterPartition(Replica& replica, std::vector<size_t> parameters,
                                 ShardLayout layout, DeviceId device, bool keeps_gradients)
    : replica_(&replica),
      parameters_(std::move(parameters)),
      layout_(std::move(layout)),
      device_(device),
      keeps_gradients_(keeps_gradients) {}

void MasterPartition::allocate(Rank& rank, int32_t index, uint64_t variant) {
  index_ = index;
  if (swapper_) {
    allocate_on_drive(rank);
  } else {
    master_ = rank.allocate(Purpose::parameter, DType::fp32, layout_.shard_elements(), device_);
    homes_ = {{0, master_}};
  }
  auto home = homes_.begin();
  for (const ShardPiece& piece : layout_.pieces_of(index)) {
    while (piece.position >= home->begin + home->slice.elements) {
      ++home;
    }
    Piece& added = pieces_.emplace_back();
    added.parameter = parameters_[piece.tensor];
    added.first_element = piece.first_element;
    added.position = piece.position;
    added.tensor.value = home->slice.part(piece.position - home->begin, piece.elements);
  }
  write_first_values(rank, variant);
}

// The model has been converted to its own type before the master copy is made of it.
void MasterPartition::write_first_values(Rank& rank, uint64_t variant) {
  if (!replica_->writes_values()) {
    return;
  }
  for (const Home& home : homes_) {
    Values values(DType::fp32, home.slice.elements);
    for (const Piece& piece : pieces_) {
      const int64_t begin = piece.position - home.begin;
      if (begin < 0 || begin >= home.slice.elements) {
        continue;
      }
      const Values whole = replica_->state().initial_value(piece.parameter, variant);
      for (int64_t i = 0; i < piece.tensor.value.elements; ++i) {
        values.set(begin + i, whole.number(piece.first_element + i));
      }
    }
    rank.write(home.slice, values);
  }
}

void MasterPartition::release(Rank& rank) {
  keeps_gradients_ = false;
  drop_gradients(rank);
  forget_optimizer(rank);
  rank.release(std::exchange(master_, Slice{}));
  pieces_.clear();
}

void MasterPartition::forget_optimizer(Rank& rank) {
  if (swapper_) {
    swapper_->forget_state(rank);
  }
  for (Piece& piece : pieces_) {
    for (const Slice& state : piece.tensor.state) {
      rank.release(state);
    }
    piece.tensor.state.clear();
    piece.tensor.steps = 0;
  }
  for (const OptimizedTensor& flat : flat_) {
    for (const Slice& state : flat.state) {
      rank.release(state);
    }
  }
  flat_.clear();
  for (const Slice& state : padding_.state) {
    rank.release(state);
  }
  padding_ = {};
}

std::vector<HeldParameter> MasterPartition::held_parameters() const {
  std::vector<HeldParameter> held;
  for (const Piece& piece : pieces_) {
    held.push_back({piece.parameter, piece.first_element, piece.tensor.value});
  }
  std::sort(held.begin(), held.end(), [](const HeldParameter& a, const HeldParameter& b) {
    return a.parameter < b.parameter;
  });
  return held;
}

// Gradients

// The first gradient at a position since the last step is taken as it is, later ones are added.
// Offloaded ones are converted on the device and cross to the host as they come.
void MasterPartition::take_gradients(Rank& rank, const std::vector<Slice>& parts,
                                     const std::vector<int64_t>& positions, SiteId site) {
  if (!has_gradients()) {
    const DType dtype =
        is_offloaded() && !is_on_drive() ? DType::fp32 : replica_->plan().parameter_dtype;
    gradient_ = rank.allocate(Purpose::gradient, dtype, layout_.shard_elements(), device_);
    if (keeps_gradients_ || takes_norms_of_padding()) {
      elementwise(rank, Kernel::fill, {}, {gradient_}, 0, {stream_of_update(), {}, site});
    }
  }
  std::vector<Slice> first;
  std::vector<Slice> first_to;
  std::vector<Slice> more;
  std::vector<Slice> more_to;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_first = taken_.insert(positions[i]).second;
    if (is_on_drive()) {
      cross_to_drive(rank, parts[i], positions[i], !is_first, site);
      continue;
    }
    (is_first ? first : more).push_back(parts[i]);
    (is_first ? first_to : more_to).push_back(gradient_.part(positions[i], parts[i].elements));
  }
  if (is_offloaded()) {
    cross_to_host(rank, first, first_to, false, site);
    cross_to_host(rank, more, more_to, true, site);
    return;
  }
  if (!first.empty()) {
    elementwise(rank, Kernel::copy, first, first_to, 0, {compute_stream, {}, site});
  }
  if (!more.empty()) {
    elementwise(rank, Kernel::add, more, more_to, 0, {compute_stream, {}, site});
  }
}

bool MasterPartition::takes_norms_of_padding() const {
  return std::ranges::any_of(replica_->plan().optimizers, [](const OptimizerPlan& optimizer) {
    return !rule_of(optimizer.kind).is_elementwise();
  });
}

void MasterPartition::cross_to_host(Rank& rank, const std::vector<Slice>& parts,
                                    const std::vector<Slice>& to, bool adds, SiteId site) {
  for (size_t i = 0; i < parts.size(); ++i) {
    Slice wide = parts[i];
    if (wide.dtype != DType::fp32) {
      wide = rank.allocate(Purpose::workspace, DType::fp32, wide.elements);
      elementwise(rank, Kernel::cast, {parts[i]}, {wide}, 0, {compute_stream, {}, site});
    }
    const Slice arrives =
        adds ? rank.allocate(Purpose::gradient, DType::fp32, wide.elements, host_device) : to[i];
    const Ticket made = rank.event({compute_stream, {}, site});
    const Ticket before = rank.event({stream_of_update(), {}, site});
    const Ticket crossed = rank.copy(wide, arrives, {copy_stream, {made, before}, site});
    rank.event({compute_stream, {crossed}, site});  // what was copied may be reused
    rank.event({stream_of_update(), {crossed}, site});
    if (wide.buffer != parts[i].buffer) {
      rank.release(wide);
    }
    if (adds) {
      elementwise(rank, Kernel::add, {arrives}, {to[i]}, 0, {stream_of_update(), {}, site});
      rank.release(arrives);
    }
  }
}

void MasterPartition::drop_gradients(Rank& rank) {
  if (has_gradients() && !keeps_gradients_) {
    rank.release(std::exchange(gradient_, Slice{}));
  }
  taken_.clear();
}

// A parameter that no loss has used takes part in the step all the same, because the optimizer sees
// flat tensors.
void MasterPartition::fill_what_has_none(Rank& rank, const ComputeOptions& there) {
  std::vector<Slice> none;
  for (const Piece& piece : pieces_) {
    if (!taken_.contains(piece.position)) {
      ++without_gradient_[piece.parameter];
      none.push_back(gradient_.part(piece.position, piece.tensor.value.elements));
    }
  }
  if (!none.empty() && !keeps_gradients_) {
    elementwise(rank, Kernel::fill, {}, none, 0, there);
  }
}

void MasterPartition::add_differences(std::vector<KnownDifference>& known) const {
  for (const auto& [parameter, steps] : without_gradient_) {
    known.push_back(updated_without_gradient(
        replica_->network().parameter_name(replica_->parameters()[parameter].place), steps,
        keeps_gradients_));
  }
}

KnownDifference updated_without_gradient(const std::string& parameter, int64_t steps, bool keeps) {
  return {
      fmt::format("`{}` got no gradient in {} step{}, and DeepSpeed updates it all the same, by "
                  "{}; one device leaves it alone",
                  parameter, steps, steps == 1 ? "" : "s",
                  keeps ? "the gradient that it had last, or zeros before it had one"
                        : "zeros, so that weight decay and momentum act"),
      "let every loss use every parameter, for example by adding 0 * parameter.sum(), or freeze "
      "what is not used"};
}

void add_update_by_own_norms(const TrainingPlan& plan, std::vector<KnownDifference>& known) {
  if (std::ranges::any_of(plan.optimizers, [](const OptimizerPlan& optimizer) {
        return !rule_of(optimizer.kind).is_elementwise();
      })) {
    known.push_back(update_by_own_norms());
  }
}

// A step

void MasterPartition::begin_step(Rank& rank, const Step& step) {
  if (!std::exchange(is_reduced_, false) && !step.may_lack_gradients) {
    throw ProgramException(step.update_site,
                           "KeyError: 0 (DeepSpeed steps by the gradients that a backward has "
                           "reduced since the last step, and there are none)");
  }
  const ComputeOptions there{stream_of_update(), {}, step.update_site};
  if (has_gradients()) {
    fill_what_has_none(rank, there);
  }
  wide_gradient_ = gradient_;
  if (has_gradients() && gradient_.dtype != DType::fp32 && !is_on_drive()) {
    wide_gradient_ =
        rank.allocate(Purpose::gradient, DType::fp32, layout_.shard_elements(), device_);
    elementwise(rank, Kernel::cast, {gradient_}, {wide_gradient_}, 0, there);
  }
  if (!is_on_drive()) {
    scale(rank, step, wide_gradient_);
  }
  squared_norm_ = rank.allocate(Purpose::metric, step.norm_dtype, 1, device_);
  KernelCall measure;
  measure.kernel = has_gradients() ? Kernel::squared_norm : Kernel::fill;
  const double zero = 0;
  if (has_gradients()) {
    measure.reads = {&wide_gradient_, 1};
    measure.memory_traffic = wide_gradient_.bytes();
  } else {
    measure.scalars = {&zero, 1};
  }
  measure.writes = {&squared_norm_, 1};
  norm_ready_ = rank.compute(measure, there);
  if (is_on_drive() && step.loss_scale != 1) {
    // Of gradients that are scaled still, as the engine adds up norms.
    const double squared = step.loss_scale * step.loss_scale;
    norm_ready_ = elementwise(rank, Kernel::scale, {}, {squared_norm_}, 1 / squared, there);
  }
  for (int32_t call = 0; step.gathers_norm && call < step.norm_calls; ++call) {
    // Parameters in sub-groups have a norm each; the whole one travels first, zeros behind it.
    Slice travels = squared_norm_;
    if (call > 0 || is_offloaded()) {
      travels = rank.allocate(Purpose::workspace, step.norm_dtype, 1);
      norm_ready_ = call == 0 ? rank.copy(squared_norm_, travels,
                                          {copy_stream, {norm_ready_}, step.norm_site})
                              : elementwise(rank, Kernel::fill, {}, {travels}, 0,
                                            {compute_stream, {}, step.norm_site});
    }
    Ticket summed = rank.all_reduce(step.group, travels, Reduction::sum,
                                    {communication_stream, {norm_ready_}, step.norm_site});
    if (call == 0 && is_offloaded()) {
      summed = rank.copy(travels, squared_norm_, {copy_stream, {summed}, step.norm_site});
    }
    rank.event({compute_stream, {summed}, step.norm_site});
    norm_ready_ = rank.event({stream_of_update(), {summed}, step.norm_site});
    if (travels.buffer != squared_norm_.buffer) {
      rank.release(travels);
    }
  }
}

Task<bool> MasterPartition::is_finite(Rank& rank) {
  co_await rank.settle(norm_ready_);
  const Values norm = rank.read(squared_norm_);
  co_return norm.empty() || std::isfinite(norm.number(0));
}

void MasterPartition::end_step(Rank& rank) {
  if (wide_gradient_.buffer != gradient_.buffer) {
    rank.release(wide_gradient_);
  }
  wide_gradient_ = Slice{};
  rank.release(std::exchange(squared_norm_, Slice{}));
  drop_gradients(rank);
}

// What is on the other side is converted before it crosses.
void MasterPartition::write_back(Rank& rank, const Slice& updated, const Slice& partition,
                                 DeviceId device, SiteId site) {
  const bool converts = partition.dtype != DType::fp32;
  const StreamId there = stream(queue::compute, device);
  if (device == device_) {
    elementwise(rank, converts ? Kernel::cast : Kernel::copy, {updated}, {partition}, 0,
                {there, {}, site});
  } else {
    Slice crosses = updated;
    if (converts) {
      crosses = rank.allocate(Purpose::parameter, partition.dtype, partition.elements, device_);
      elementwise(rank, Kernel::cast, {updated}, {crosses}, 0, {stream_of_update(), {}, site});
    }
    const Ticket made = rank.event({stream_of_update(), {}, site});
    const Ticket crossed = rank.copy(crosses, partition, {copy_stream, {made}, site});
    rank.event({there, {crossed}, site});
    rank.event({stream_of_update(), {crossed}, site});
    if (converts) {
      rank.release(crosses);
    }
  }
  const Ticket written = rank.event({there, {}, site});
  rank.event({compute_stream, {written}, site});
}

}  // namespace lockstep
