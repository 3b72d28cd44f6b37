#include "model/strategy/sharded/sharded_unit.hpp"

#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/coalesced.hpp"
#include "model/strategy/elementwise.hpp"

namespace lockstep {

namespace {

Ticket apply(Rank& rank, Kernel kernel, const std::vector<Slice>& reads,
             const std::vector<Slice>& writes, double scalar, After after, SiteId site) {
  return elementwise(rank, kernel, reads, writes, scalar, {compute_stream, after, site});
}

}  // namespace

GradientDivision GradientDivision::over(int64_t ranks) {
  GradientDivision division;
  const auto count = static_cast<double>(ranks);
  while (ranks % static_cast<int64_t>(division.before) == 0 &&
         count / division.before > division.before) {
    division.before *= 2;
  }
  division.after = count / division.before;
  return division;
}

ShardedUnit::ShardedUnit(Replica& replica, std::vector<size_t> parameters, ShardLayout layout,
                         ShardTypes types)
    : replica_(&replica),
      parameters_(std::move(parameters)),
      layout_(std::move(layout)),
      types_(types) {}

void ShardedUnit::allocate(Rank& rank, int32_t index, uint64_t variant) {
  index_ = index;
  shard_ = rank.allocate(Purpose::parameter, types_.stored, layout_.shard_elements());
  for (const ShardPiece& piece : layout_.pieces_of(index)) {
    Piece& added = pieces_.emplace_back();
    added.parameter = parameters_[piece.tensor];
    added.first_element = piece.first_element;
    added.position = piece.position;
    added.tensor.value = shard_.part(piece.position, piece.elements);
  }
  write_first_values(rank, variant);
}

// Drawn by their place in the whole parameter, then cut: the same model for every number of ranks.
void ShardedUnit::write_first_values(Rank& rank, uint64_t variant) {
  if (!replica_->writes_values()) {
    return;
  }
  Values values(types_.stored, layout_.shard_elements());
  for (const Piece& piece : pieces_) {
    const Values whole = replica_->initial_value(piece.parameter, variant);
    for (int64_t i = 0; i < piece.tensor.value.elements; ++i) {
      values.set(piece.position + i, whole.number(piece.first_element + i));
    }
  }
  rank.write(shard_, values);
}

// Gathering

Slice ShardedUnit::narrowed_shard(Rank& rank, SiteId site) {
  if (types_.stored == types_.gathered) {
    return shard_;
  }
  const Slice narrow = rank.allocate(Purpose::communication, types_.gathered,
                                     layout_.shard_elements(), DeviceId{0}, queue::communication);
  apply(rank, Kernel::cast, {shard_}, {narrow}, 0, {}, site);
  return narrow;
}

void ShardedUnit::gather(Rank& rank, const Exchange& exchange, Ticket after) {
  ensure(!gathered_, "a unit that is not gathered yet");
  gathered_ = true;
  if (is_whole()) {
    whole_ = shard_;
    bind_flat();
    return;
  }
  const bool is_larger = larger_part_.has_value();
  const Slice own = is_larger ? larger_part_->memory : narrowed_shard(rank, exchange.site);
  const bool is_narrow = !is_larger && own.buffer != shard_.buffer;
  const Ticket narrowed = is_narrow ? rank.event({compute_stream, {}, exchange.site}) : Ticket{};
  if (!is_sharded()) {
    whole_ = own;
    bind_flat();
    return;
  }
  const Purpose purpose = layout_.is_flat() ? Purpose::parameter : Purpose::communication;
  whole_ = rank.allocate(purpose, types_.gathered, gathered_layout().gathered_elements());
  gather_done_ = rank.all_gather(exchange.group, own, whole_,
                                 {communication_stream, {after, narrowed}, exchange.site});
  if (is_narrow) {
    rank.release(own);
  }
  if (layout_.is_flat()) {
    bind_flat();
  }
}

void ShardedUnit::bind_flat() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Replica::Parameter& parameter = replica_->parameters()[parameters_[i]];
    const int64_t elements = replica_->network().parameter(parameter.place).elements();
    parameter.tensor.value = whole_.part(layout_.offset_of(i), elements);
  }
}

void ShardedUnit::await_gathered(Rank& rank, SiteId site) {
  if (const Ticket done = std::exchange(gather_done_, Ticket{})) {
    rank.event({compute_stream, {done}, site});
    if (!layout_.is_flat()) {
      copy_out(rank, site);
    }
  }
}

std::vector<Slice> ShardedUnit::parts_of(const ShardLayout& layout, const Slice& gathered,
                                         size_t tensor) {
  std::vector<Slice> parts;
  for (int32_t rank = 0; rank < layout.ranks(); ++rank) {
    for (const ShardPiece& piece : layout.pieces_of(rank)) {
      if (piece.tensor == tensor) {
        parts.push_back(
            gathered.part(rank * layout.shard_elements() + piece.position, piece.elements));
      }
    }
  }
  return parts;
}

// Every parameter's rows lie apart in what was gathered, a part of each rank behind the other.
void ShardedUnit::copy_out(Rank& rank, SiteId site) {
  std::vector<Slice> from;
  std::vector<Slice> to;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Replica::Parameter& parameter = replica_->parameters()[parameters_[i]];
    const int64_t elements = replica_->network().parameter(parameter.place).elements();
    parameter.tensor.value = rank.allocate(Purpose::parameter, types_.gathered, elements);
    if (!replica_->plan().numerics) {
      to.push_back(parameter.tensor.value);
      continue;
    }
    int64_t copied = 0;
    for (const Slice& part : parts_of(gathered_layout(), whole_, i)) {
      from.push_back(part);
      to.push_back(parameter.tensor.value.part(copied, part.elements));
      copied += part.elements;
    }
  }
  apply(rank, Kernel::copy, replica_->plan().numerics ? from : std::vector<Slice>{whole_}, to, 0,
        {}, site);
  rank.release(std::exchange(whole_, Slice{}));
  if (larger_part_) {
    rank.release(larger_part_->memory);
    larger_part_.reset();
  }
}

void ShardedUnit::free_but_part(Rank& rank, int32_t ranks, int32_t index, SiteId site) {
  LargerPart part{layout_.over_fewer(ranks), {}};
  part.memory = rank.allocate(Purpose::parameter, types_.gathered, part.layout.shard_elements());
  std::vector<Slice> from;
  std::vector<Slice> to;
  for (const ShardPiece& piece : part.layout.pieces_of(index)) {
    const Slice& value = replica_->parameters()[parameters_[piece.tensor]].tensor.value;
    from.push_back(value.part(piece.first_element, piece.elements));
    to.push_back(part.memory.part(piece.position, piece.elements));
  }
  apply(rank, Kernel::copy, from, to, 0, {}, site);
  free(rank);
  larger_part_ = part;
}

void ShardedUnit::free(Rank& rank) {
  if (!std::exchange(gathered_, false)) {
    return;
  }
  const bool owns_parts = !layout_.is_flat() && whole_.buffer == no_buffer;
  for (const size_t index : parameters_) {
    Slice& value = replica_->parameters()[index].tensor.value;
    if (owns_parts) {
      rank.release(value);
    }
    value = Slice{};
  }
  if (whole_.buffer != no_buffer && whole_.buffer != shard_.buffer) {
    rank.release(whole_);
  }
  whole_ = Slice{};
  gather_done_ = Ticket{};
}

// Gradients

bool ShardedUnit::has_whole_gradients() const {
  return std::any_of(parameters_.begin(), parameters_.end(), [this](size_t index) {
    return replica_->parameters()[index].tensor.gradient.buffer != no_buffer;
  });
}

// Gradients of parameters that this backward left out are zeros; so is padding.
void ShardedUnit::pack_gradients(Rank& rank, const ShardLayout& layout,
                                 const std::vector<size_t>& tensors, const Slice& packed,
                                 double factor, Ticket done, SiteId site) {
  std::vector<Slice> from;
  std::vector<Slice> to;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Slice& gradient = replica_->parameters()[parameters_[tensors[i]]].tensor.gradient;
    if (gradient.buffer == no_buffer) {
      continue;
    }
    if (!layout.is_flat() && !replica_->plan().numerics) {
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
  if (!layout.is_flat() && !replica_->plan().numerics) {
    to = {packed};
  }
  fill_padding(rank, packed, to, site);
  if (types_.gathered == types_.reduced) {
    apply(rank, factor == 1 ? Kernel::copy : Kernel::scale, from, to, factor, {done}, site);
    return;
  }
  apply(rank, Kernel::cast, from, to, 0, {done}, site);
  if (factor != 1) {
    apply(rank, Kernel::scale, {}, {packed}, factor, {}, site);
  }
}

void ShardedUnit::fill_padding(Rank& rank, const Slice& packed, const std::vector<Slice>& written,
                               SiteId site) {
  if (total_elements(written) < packed.elements) {
    apply(rank, Kernel::fill, {}, {packed}, 0, {}, site);
  }
}

void ShardedUnit::reduce(Rank& rank, const Exchange& exchange, const Exchange* across,
                         const GradientDivision& division, Ticket done) {
  ensure(reduced_.buffer == no_buffer, "one reduction of a unit at a time");
  std::vector<size_t> tensors;
  reduces_.assign(parameters_.size(), false);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Replica::Parameter& parameter = replica_->parameters()[parameters_[i]];
    const bool is_given = parameter.tensor.gradient.buffer != no_buffer;
    reduces_[i] = parameter.trainable && (is_given || !only_given_);
    if (!only_given_ || reduces_[i]) {
      tensors.push_back(i);
    }
  }
  if (only_given_) {
    reduced_layout_ = layout_.of_tensors(tensors);
  }
  const ShardLayout& layout = reduced_layout_ ? *reduced_layout_ : layout_;
  // What only the stream that reduces still reads is that stream's memory; without shards it is the
  // gradient itself.
  const Slice packed = rank.allocate(is_sharded() ? Purpose::communication : Purpose::gradient,
                                     types_.reduced, layout.gathered_elements(), DeviceId{0},
                                     is_sharded() ? queue::communication : queue::compute);
  pack_gradients(rank, layout, tensors, packed, 1 / division.before, done, exchange.site);
  for (const size_t index : parameters_) {
    replica_->forget_gradient(rank, replica_->parameters()[index]);
  }
  const Reduction reduction = division.averages ? Reduction::avg : Reduction::sum;
  const Ticket ready = rank.event({compute_stream, {}, exchange.site});
  if (is_sharded()) {
    reduced_ = rank.allocate(Purpose::gradient, types_.reduced, layout.shard_elements());
    reduce_done_ = rank.reduce_scatter(exchange.group, packed, reduced_, reduction, {},
                                       {communication_stream, {ready}, exchange.site});
    rank.release(packed);
  } else {
    reduced_ = packed;
    reduce_done_ = ready;
  }
  if (across != nullptr) {
    reduce_done_ = rank.all_reduce(across->group, reduced_, reduction,
                                   {communication_stream, {reduce_done_}, across->site});
  }
}

void ShardedUnit::settle_gradients(Rank& rank, const GradientDivision& division, SiteId site) {
  if (reduced_.buffer == no_buffer) {
    return;
  }
  rank.event({compute_stream, {std::exchange(reduce_done_, Ticket{})}, site});
  if (division.after != 1) {
    apply(rank, Kernel::scale, {}, {reduced_}, 1 / division.after, {}, site);
  }
  adopt_gradient(rank, site);
}

// The first becomes the gradient, later ones are added to it.
void ShardedUnit::adopt_gradient(Rank& rank, SiteId site) {
  Slice reduced = std::exchange(reduced_, Slice{});
  if (types_.reduced != types_.stored) {
    const Slice wide = rank.allocate(Purpose::gradient, types_.stored, reduced.elements);
    apply(rank, Kernel::cast, {reduced}, {wide}, 0, {}, site);
    rank.release(reduced);
    reduced = wide;
  }
  if (const std::optional<ShardLayout> given = std::exchange(reduced_layout_, std::nullopt)) {
    reduced = in_whole_layout(rank, *given, reduced, site);
  }
  const bool adds = gradient_.buffer != no_buffer;
  if (adds) {
    apply(rank, Kernel::add, {reduced}, {gradient_}, 0, {}, site);
    rank.release(reduced);
  } else {
    gradient_ = reduced;
  }
  for (Piece& piece : pieces_) {
    const auto found = std::find(parameters_.begin(), parameters_.end(), piece.parameter);
    if (reduces_[static_cast<size_t>(found - parameters_.begin())]) {
      piece.tensor.gradient = gradient_.part(piece.position, piece.tensor.value.elements);
    }
  }
}

// Where some parameters got no gradient, the others lie closer together.
Slice ShardedUnit::in_whole_layout(Rank& rank, const ShardLayout& given, const Slice& reduced,
                                   SiteId site) {
  if (given.shard_elements() == layout_.shard_elements()) {
    return reduced;
  }
  const Slice whole = rank.allocate(Purpose::gradient, types_.stored, layout_.shard_elements());
  apply(rank, Kernel::fill, {}, {whole}, 0, {}, site);
  std::vector<size_t> tensors;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (reduces_[i]) {
      tensors.push_back(parameters_[i]);
    }
  }
  std::vector<Slice> from;
  std::vector<Slice> to;
  for (const ShardPiece& piece : given.pieces_of(index_)) {
    const auto own = std::ranges::find(pieces_, tensors[piece.tensor], &Piece::parameter);
    from.push_back(reduced.part(piece.position, piece.elements));
    to.push_back(whole.part(own->position, piece.elements));
  }
  apply(rank, Kernel::copy, from, to, 0, {}, site);
  rank.release(reduced);
  return whole;
}

void ShardedUnit::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none, SiteId site) {
  const OptimizerPlan& plan = replica_->plan().optimizers.at(optimizer);
  std::vector<Slice> filled;
  bool keeps = false;
  for (Piece& piece : pieces_) {
    Slice& gradient = piece.tensor.gradient;
    const bool is_held = plan.holds(replica_->parameters()[piece.parameter].place.layer);
    if (is_held && gradient.buffer != no_buffer && !set_to_none) {
      filled.push_back(gradient);
    } else if (is_held) {
      gradient = Slice{};
    }
    keeps = keeps || gradient.buffer != no_buffer;
  }
  if (!filled.empty()) {
    apply(rank, Kernel::fill, {}, filled, 0, {}, site);
  }
  if (!keeps && gradient_.buffer != no_buffer) {
    rank.release(std::exchange(gradient_, Slice{}));
  }
}

void ShardedUnit::forget_optimizer(Rank& rank) {
  for (Piece& piece : pieces_) {
    for (const Slice& state : piece.tensor.state) {
      rank.release(state);
    }
    piece.tensor.state.clear();
    piece.tensor.steps = 0;
  }
}

}  // namespace lockstep
