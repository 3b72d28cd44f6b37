// The gradients of a unit: how they are reduced and become those of the shard.
#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/fsdp/sharded_unit.hpp"

namespace lockstep {

void ShardedUnit::keep_whole_gradients(Rank& rank, SiteId site) {
  if (types_.gathered == types_.reduced) {
    return;
  }
  parameters_.keep_gradients(rank, types_.reduced, site);
}

// Gradients of parameters that this backward left out are zeros; so is padding.
void ShardedUnit::pack_gradients(Rank& rank, const ShardLayout& layout,
                                 const std::vector<size_t>& tensors, const Slice& packed,
                                 double factor, Ticket done, SiteId site) {
  std::vector<Slice> from;
  std::vector<Slice> to;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Slice& gradient = parameters_.gradient(tensors[i]);
    if (gradient.buffer == no_buffer) {
      continue;
    }
    if (!layout.is_flat() && !parameters_.replica().plan().numerics) {
      from.push_back(gradient);  // one kernel, whatever the parts are
      continue;
    }
    int64_t taken = 0;
    const std::vector<Slice> parts =
        layout.is_flat() ? std::vector<Slice>{packed.part(layout.offset_of(i), gradient.elements)}
                         : parts_of(layout, packed, i);
    for (const Slice& part : parts) {
      from.push_back(gradient.part(taken, part.elements));
      to.push_back(part);
      taken += part.elements;
    }
  }
  if (!layout.is_flat() && !parameters_.replica().plan().numerics) {
    moving(rank, from, {packed}, {compute_stream, {done}, site});
    return;
  }
  fill_padding(rank, packed, to, site);
  if (types_.gathered == types_.reduced || parameters_.keeps_gradients()) {
    elementwise(rank, factor == 1 ? Kernel::copy : Kernel::scale, from, to, factor, {done}, site);
    return;
  }
  elementwise(rank, Kernel::cast, from, to, 0, {done}, site);
  if (factor != 1) {
    elementwise(rank, Kernel::scale, {}, {packed}, factor, {}, site);
  }
}

void ShardedUnit::fill_padding(Rank& rank, const Slice& packed, const std::vector<Slice>& written,
                               SiteId site) {
  if (total_elements(written) < packed.elements) {
    elementwise(rank, Kernel::fill, {}, {packed}, 0, {}, site);
  }
}

// Tensors of which something is reduced.
std::vector<size_t> ShardedUnit::choose_reduced() {
  ensure(under_way_.sum.buffer == no_buffer, "one reduction of a unit at a time");
  std::vector<size_t> tensors;
  under_way_.takes.assign(parameters_.count(), false);
  for (size_t i = 0; i < parameters_.count(); ++i) {
    const Replica::Parameter& parameter = parameters_[i];
    const bool is_given = parameters_.gradient(i).buffer != no_buffer;
    under_way_.takes[i] = parameter.trainable && (is_given || !only_given_);
    if (!only_given_ || under_way_.takes[i]) {
      tensors.push_back(i);
    }
  }
  return tensors;
}

void ShardedUnit::pack_for_reduction(Rank& rank, const Slice& packed, double factor, Ticket done,
                                     SiteId site) {
  pack_gradients(rank, layout_, choose_reduced(), packed, factor, done, site);
  parameters_.forget_gradients(rank);
}

void ShardedUnit::take_reduced(Rank& rank, const Slice& sum, double factor, Ticket done,
                               SiteId site) {
  under_way_.sum = rank.allocate(Purpose::gradient, types_.reduced, sum.elements, DeviceId{0},
                                 home_of_reduced(keeps_reduced() && !types_.widens_sums()));
  settled_ = elementwise(rank, factor == 1 ? Kernel::copy : Kernel::scale, {sum}, {under_way_.sum},
                         factor, {settles_on_, {done}, site});
  adopt_gradient(rank, site);
}

void ShardedUnit::reduce(Rank& rank, const Exchange& exchange, const Exchange* across,
                         const GradientDivision& division, Ticket done) {
  if (parameters_.keeps_gradients()) {
    keep_whole_gradients(rank, exchange.site);
  }
  const std::vector<size_t> tensors = choose_reduced();
  if (only_given_) {
    under_way_.layout = layout_.of_tensors(tensors);
  }
  const ShardLayout& layout = under_way_.layout ? *under_way_.layout : layout_;
  // What only the stream that reduces still reads is that stream's memory; without shards it is the
  // gradient itself.
  const uint8_t home = home_of_reduced(keeps_reduced() && !types_.widens_sums());
  const Slice packed =
      rank.allocate(is_sharded() ? Purpose::communication : Purpose::gradient, types_.reduced,
                    layout.gathered_elements(), DeviceId{0}, is_sharded() ? home_of_shard() : home);
  pack_gradients(rank, layout, tensors, packed, 1 / division.before, done, exchange.site);
  parameters_.forget_gradients(rank);
  const Reduction reduction = division.averages ? Reduction::avg : Reduction::sum;
  const Ticket ready = rank.event({compute_stream, {}, exchange.site});
  if (is_sharded()) {
    under_way_.sum = rank.allocate(Purpose::gradient, types_.reduced, layout.shard_elements(),
                                   DeviceId{0}, home);
    under_way_.done = rank.reduce_scatter(exchange.group, packed, under_way_.sum, reduction, {},
                                          {collectives_on_, {ready}, exchange.site});
    if (settles_on_ == compute_stream) {
      rank.release(packed);
    } else {
      under_way_.packed = packed;
    }
  } else {
    under_way_.sum = packed;
    under_way_.done = ready;
  }
  if (across != nullptr) {
    under_way_.done = rank.all_reduce(across->group, under_way_.sum, reduction,
                                      {collectives_on_, {under_way_.done}, across->site});
  }
}

void ShardedUnit::settle_gradients(Rank& rank, const GradientDivision& division, SiteId site) {
  if (under_way_.sum.buffer == no_buffer) {
    return;
  }
  settled_ = std::exchange(under_way_.done, Ticket{});
  if (settles_on_ == compute_stream) {
    settled_ = rank.event({compute_stream, {settled_}, site});
  }
  if (division.after != 1) {
    settled_ = elementwise(rank, Kernel::scale, {}, {under_way_.sum}, 1 / division.after,
                           {settles_on_, {settled_}, site});
  }
  adopt_gradient(rank, site);
  if (under_way_.packed.buffer != no_buffer) {  // the hook that reduces holds it until its end
    rank.release(std::exchange(under_way_.packed, Slice{}));
  }
}

void ShardedUnit::forget_offloaded(Rank& rank) {
  if (offloading_.leaving.buffer != no_buffer) {
    rank.release(std::exchange(offloading_.leaving, Slice{}));
  }
}

// The first becomes the gradient, later ones are added to it.
void ShardedUnit::adopt_gradient(Rank& rank, SiteId site) {
  Slice reduced = std::exchange(under_way_.sum, Slice{});
  if (types_.widens_sums()) {
    const Slice wide = rank.allocate(Purpose::gradient, types_.stored, reduced.elements,
                                     DeviceId{0}, home_of_reduced(keeps_reduced()));
    settled_ =
        elementwise(rank, Kernel::cast, {reduced}, {wide}, 0, {settles_on_, {settled_}, site});
    rank.release(reduced);
    reduced = wide;
  }
  if (const std::optional<ShardLayout> given = std::exchange(under_way_.layout, std::nullopt)) {
    reduced = in_whole_layout(rank, *given, reduced, site);
  }
  const bool adds = gradient_.buffer != no_buffer;
  if (offloading_.device == host_device) {
    move_to_host(rank, reduced, site);
  } else if (adds) {
    settled_ = add_gradient(rank, reduced, {settles_on_, {settled_}, site});
    rank.release(reduced);
  } else {
    gradient_ = reduced;
  }
  for (size_t i = 0; i < parameters_.count(); ++i) {
    given_[i] = given_[i] || under_way_.takes[i];
  }
  for (Piece& piece : pieces_) {
    if (under_way_.takes[parameters_.number_of(piece.parameter)]) {
      piece.tensor.gradient = gradient_.part(piece.position, piece.tensor.value.elements);
    }
  }
}

bool ShardedUnit::has_gradient(size_t parameter) const {
  return given_[parameters_.number_of(parameter)];
}

OptimizedTensor& ShardedUnit::flat_tensor() {
  flat_.whole.value = shard_;
  flat_.whole.gradient = gradient_;
  return flat_.whole;
}

// A gradient that zero_grad has set to None while others of the unit stayed begins anew: FSDP1
// writes zeros over it when it gathers next (_writeback_orig_params), and FSDP2 has one for each
// parameter.
Ticket ShardedUnit::add_gradient(Rank& rank, const Slice& reduced, const ComputeOptions& there) {
  std::vector<Slice> added;
  std::vector<Slice> added_to;
  std::vector<Slice> fresh;
  std::vector<Slice> fresh_to;
  for (const Piece& piece : pieces_) {
    const bool is_fresh = piece.tensor.gradient.buffer == no_buffer;
    const int64_t elements = piece.tensor.value.elements;
    (is_fresh ? fresh : added).push_back(reduced.part(piece.position, elements));
    (is_fresh ? fresh_to : added_to).push_back(gradient_.part(piece.position, elements));
  }
  if (fresh.empty()) {
    return elementwise(rank, Kernel::add, {reduced}, {gradient_}, 0, there);
  }
  if (!added.empty()) {
    elementwise(rank, Kernel::add, added, added_to, 0, there);
  }
  return elementwise(rank, Kernel::copy, fresh, fresh_to, 0, there);
}

// Where a stream of its own settles gradients, it copies them as well, and the host's stream waits
// when the backward has ended: shards that are gathered meanwhile come through it.
void ShardedUnit::move_to_host(Rank& rank, Slice reduced, SiteId site) {
  const bool copies_itself = settles_on_ != compute_stream;
  const bool adds = gradient_.buffer != no_buffer && offloading_.accumulates;
  offloading_.has_replaced_gradients =
      offloading_.has_replaced_gradients || (offloading_.holds_gradients && !adds);
  offloading_.holds_gradients = true;
  Slice arrives = gradient_;
  Ticket before{};
  if (arrives.buffer == no_buffer || adds) {
    arrives = rank.allocate(Purpose::gradient, types_.stored, reduced.elements, host_device);
  } else {
    before = rank.event({stream_of_update(), {}, site});
  }
  const StreamId copies_on = copies_itself ? settles_on_ : copy_stream;
  settled_ = rank.copy(reduced, arrives, {copies_on, {settled_, before}, site});
  if (copies_itself) {
    offloading_.leaving = reduced;
    gradient_ = arrives;
    return;
  }
  rank.event({compute_stream, {settled_}, site});
  rank.release(reduced);
  rank.event({stream_of_update(), {settled_}, site});
  if (adds) {
    add_gradient(rank, arrives, {stream_of_update(), {}, site});
    rank.release(arrives);
  } else {
    gradient_ = arrives;
  }
}

// Where some parameters got no gradient, the others lie closer together.
Slice ShardedUnit::in_whole_layout(Rank& rank, const ShardLayout& given, const Slice& reduced,
                                   SiteId site) {
  if (given.shard_elements() == layout_.shard_elements()) {
    return reduced;
  }
  const Slice whole = rank.allocate(Purpose::gradient, types_.stored, layout_.shard_elements());
  elementwise(rank, Kernel::fill, {}, {whole}, 0, {}, site);
  std::vector<size_t> tensors;
  for (size_t i = 0; i < parameters_.count(); ++i) {
    if (under_way_.takes[i]) {
      tensors.push_back(parameters_.indices()[i]);
    }
  }
  std::vector<Slice> from;
  std::vector<Slice> to;
  for (const ShardPiece& piece : given.pieces_of(index_)) {
    const auto own = std::ranges::find(pieces_, tensors[piece.tensor], &Piece::parameter);
    from.push_back(reduced.part(piece.position, piece.elements));
    to.push_back(whole.part(own->position, piece.elements));
  }
  settled_ = elementwise(rank, Kernel::copy, from, to, 0, {}, site);
  rank.release(reduced);
  return whole;
}

void ShardedUnit::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none, SiteId site) {
  const OptimizerPlan& plan = parameters_.replica().plan().optimizers.at(optimizer);
  std::vector<Slice> filled;
  bool keeps = false;
  bool others = false;
  for (Piece& piece : pieces_) {
    Slice& gradient = piece.tensor.gradient;
    const bool is_held =
        plan.holds(parameters_.replica().parameters()[piece.parameter].place.layer);
    others = others || (!is_held && gradient.buffer != no_buffer);
    if (is_held && gradient.buffer != no_buffer && !set_to_none) {
      filled.push_back(gradient);
    } else if (is_held) {
      gradient = Slice{};
    }
    keeps = keeps || gradient.buffer != no_buffer;
  }
  for (size_t i = 0; set_to_none && i < parameters_.count(); ++i) {
    given_[i] = given_[i] && !plan.holds(parameters_[i].place.layer);
  }
  offloading_.holds_gradients = offloading_.holds_gradients && others;
  if (!filled.empty()) {
    elementwise(rank, Kernel::fill, {}, filled, 0, {stream_of_update(), {}, site});
  }
  if (!keeps && gradient_.buffer != no_buffer) {
    rank.release(std::exchange(gradient_, Slice{}));
  }
}

void ShardedUnit::make_state_of_padding(Rank& rank, const OptimizerPlan& optimizer,
                                        const ComputeOptions& there) {
  int64_t padding = shard_.elements;
  for (const Piece& piece : pieces_) {
    padding -= piece.tensor.value.elements;
  }
  if (padding > 0) {
    flat_.padding.value = shard_.part(0, padding);
    make_optimizer_state(rank, optimizer, flat_.padding, there);
  }
}

Bytes ShardedUnit::state_bytes() const {
  Bytes bytes{};
  const auto add = [&bytes](const OptimizedTensor& tensor) {
    for (const Slice& state : tensor.state) {
      bytes += state.bytes();
    }
  };
  std::ranges::for_each(pieces_, add, &Piece::tensor);
  add(flat_.whole);
  add(flat_.padding);
  return bytes;
}

void ShardedUnit::forget_optimizer(Rank& rank) {
  const auto forget = [&rank](OptimizedTensor& tensor) {
    for (const Slice& state : tensor.state) {
      rank.release(state);
    }
    tensor.state.clear();
    tensor.steps = 0;
  };
  for (Piece& piece : pieces_) {
    forget(piece.tensor);
  }
  forget(flat_.whole);
  forget(flat_.padding);
}

}  // namespace lockstep
