#include "model/strategy/megatron/megatron_optimizer.hpp"

#include <algorithm>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/gradient_clipping.hpp"
#include "model/strategy/local_model/scaled_step.hpp"
#include "model/strategy/megatron/megatron_sites.hpp"

namespace lockstep {

TrainingPlan in_megatron_types(TrainingPlan plan) {
  plan.parameter_dtype = plan.activation_dtype;
  return plan;
}

MegatronOptimizer::MegatronOptimizer(Rank& rank, Replica& replica, const MegatronBuffers& buffers)
    : replica_(&replica),
      has_copies_(size_of(replica.plan().parameter_dtype) < size_of(DType::fp32)),
      is_divided_(buffers.options().use_distributed_optimizer) {
  for (const MegatronBuffers::Bucket& bucket : buffers.buckets()) {
    const int64_t begin = is_divided_ ? buffers.shard_begin(bucket) : 0;
    const int64_t end =
        is_divided_ ? begin + buffers.shard_elements(bucket) : bucket.layout.elements();
    if (is_divided_ && !replica.plan().numerics) {
      // Where nothing has values, a shard is one piece: replicas then do the same.
      add_piece(bucket.layout.parts.front().parameter, 0,
                bucket.parameters.part(begin, end - begin),
                bucket.gradient.part(begin, end - begin));
      continue;
    }
    for (const BufferedPart& part : bucket.layout.parts) {
      const int64_t at = part.begin - bucket.layout.begin;
      const int64_t first = std::max(at, begin);
      const int64_t last = std::min(at + part.elements, end);
      if (first < last) {
        const Slice value = replica.parameters()[part.parameter].tensor.value;
        add_piece(part.parameter, first - at, value.part(first - at, last - first),
                  bucket.gradient.part(first, last - first));
      }
    }
  }
  std::ranges::stable_sort(pieces_, {}, &Piece::parameter);
  if (has_copies_) {
    make_copies(rank);
  }
}

void MegatronOptimizer::add_piece(size_t parameter, int64_t first, const Slice& value,
                                  const Slice& gradient) {
  Piece& piece = pieces_.emplace_back();
  piece.parameter = parameter;
  piece.first_element = first;
  piece.value = value;
  piece.gradient = gradient;
  piece.updated.value = value;
}

// Of parameters that have been rounded to 16 bits already.
void MegatronOptimizer::make_copies(Rank& rank) {
  std::vector<Slice> values;
  std::vector<Slice> copies;
  for (Piece& piece : pieces_) {
    piece.updated.value =
        rank.allocate(Purpose::optimizer_state, DType::fp32, piece.value.elements);
    values.push_back(piece.value);
    copies.push_back(piece.updated.value);
  }
  if (!values.empty()) {
    elementwise(rank, Kernel::cast, values, copies, 0,
                {replica_->compute(), {}, site_id(megatron_sites::update)});
  }
}

void MegatronOptimizer::forget_state(Rank& rank) {
  for (Piece& piece : pieces_) {
    for (const Slice& state : piece.updated.state) {
      rank.release(state);
    }
    piece.updated.state.clear();
    piece.updated.steps = 0;
  }
}

std::vector<HeldParameter> MegatronOptimizer::held_parameters() const {
  std::vector<HeldParameter> held;
  for (const Piece& piece : pieces_) {
    held.push_back({piece.parameter, piece.first_element, piece.updated.value});
  }
  return held;
}

Bytes MegatronOptimizer::state_bytes(const std::vector<int32_t>& holders) const {
  Bytes bytes{};
  for (const Piece& piece : pieces_) {
    Bytes held = has_copies_ ? piece.updated.value.bytes() : Bytes{};
    for (const Slice& state : piece.updated.state) {
      held += state.bytes();
    }
    bytes += held / holders[piece.parameter];
  }
  return bytes;
}

/// Gradients in the type of what is updated; those that are made here are of this step alone.
std::vector<Slice> MegatronOptimizer::wide_gradients(Rank& rank) {
  std::vector<Slice> made;
  std::vector<Slice> narrow;
  for (Piece& piece : pieces_) {
    piece.updated.gradient = piece.gradient;
    if (piece.gradient.dtype != piece.updated.value.dtype) {
      piece.updated.gradient = made.emplace_back(
          rank.allocate(Purpose::gradient, piece.updated.value.dtype, piece.gradient.elements));
      narrow.push_back(piece.gradient);
    }
  }
  if (!made.empty()) {
    elementwise(rank, Kernel::cast, narrow, made, 0,
                {replica_->compute(), {}, site_id(megatron_sites::update)});
  }
  return made;
}

// prepare_grads: the scale is updated before the step. A skipped one ends there.
Task<bool> MegatronOptimizer::step(Rank& rank, Step step) {
  const std::vector<Slice> made = wide_gradients(rank);
  std::vector<Slice> gradients;
  for (const Piece& piece : pieces_) {
    gradients.push_back(piece.updated.gradient);
  }
  bool skips = false;
  if (step.loss_scale != nullptr) {
    OverflowCheck check(rank, DeviceId{0});
    check.unscale(gradients, step.loss_scale->scale());
    if (step.norm_group) {
      check.share(*step.norm_group, Reduction::max);
    }
    const std::optional<bool> found = co_await check.found();
    skips = note_step(*step.loss_scale, found);
  }
  if (!skips) {
    update(rank, step, gradients);
  }
  for (Piece& piece : pieces_) {
    piece.updated.gradient = Slice{};
  }
  for (const Slice& gradient : made) {
    rank.release(gradient);
  }
  co_return !skips;
}

void MegatronOptimizer::update(Rank& rank, const Step& step, const std::vector<Slice>& gradients) {
  const SiteId site = site_id(megatron_sites::update);
  std::vector<Slice> counted;
  std::vector<OptimizedTensor*> tensors;
  std::vector<Slice> updated;
  std::vector<Slice> values;
  for (Piece& piece : pieces_) {
    if (step.counts[piece.parameter]) {
      counted.push_back(piece.updated.gradient);
    }
    tensors.push_back(&piece.updated);
    updated.push_back(piece.updated.value);
    values.push_back(piece.value);
  }
  SharedNorm norm{{{step.norm_group.value_or(world_group)}}, site_id(megatron_sites::share_norm)};
  norm.counted = &counted;
  clip_gradients(rank, step.options.clipping, gradients, DeviceId{0},
                 step.norm_group ? &norm : nullptr);
  OptimizerPlan optimizer = replica_->plan().optimizers[step.options.optimizer];
  optimizer.lr = step.options.learning_rate.value_or(optimizer.lr);
  optimizer_step(rank, optimizer, kernels_of(replica_->plan()), tensors,
                 {replica_->compute(), {}, site});
  if (has_copies_ && !values.empty()) {
    elementwise(rank, Kernel::cast, updated, values, 0, {replica_->compute(), {}, site});
  }
}

}  // namespace lockstep
