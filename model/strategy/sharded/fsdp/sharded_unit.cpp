#include "model/strategy/sharded/fsdp/sharded_unit.hpp"

#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

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

GradientDivision GradientDivision::of_type(DType reduced, int64_t ranks) {
  return reduced == DType::fp16 ? over(ranks) : GradientDivision{1, 1, true};
}

ShardedUnit::ShardedUnit(Replica& replica, std::vector<size_t> parameters, ShardLayout layout,
                         ShardTypes types)
    : parameters_(replica, std::move(parameters)), layout_(std::move(layout)), types_(types) {}

void ShardedUnit::allocate(Rank& rank, int32_t index, uint64_t variant) {
  index_ = index;
  shard_ = rank.allocate(Purpose::parameter, types_.stored, layout_.shard_elements(),
                         offloading_.device);
  for (const ShardPiece& piece : layout_.pieces_of(index)) {
    Piece& added = pieces_.emplace_back();
    added.parameter = parameters_.indices()[piece.tensor];
    added.first_element = piece.first_element;
    added.position = piece.position;
    added.tensor.value = shard_.part(piece.position, piece.elements);
    if (!is_sharded()) {
      added.tensor.shape =
          &parameters_.replica()
               .network()
               .parameter(parameters_.replica().parameters()[added.parameter].place)
               .shape;
    }
  }
  given_.assign(parameters_.count(), false);
  write_first_values(rank, variant);
}

// Drawn by their place in the whole parameter, then cut: the same model for every number of ranks.
void ShardedUnit::write_first_values(Rank& rank, uint64_t variant) {
  if (!parameters_.replica().writes_values()) {
    return;
  }
  Values values(types_.stored, layout_.shard_elements());
  for (const Piece& piece : pieces_) {
    const Values whole = parameters_.replica().state().initial_value(piece.parameter, variant);
    for (int64_t i = 0; i < piece.tensor.value.elements; ++i) {
      values.set(piece.position + i, whole.number(piece.first_element + i));
    }
  }
  rank.write(shard_, values);
}

// Gathering

// Offloaded shards cross to the device first.
ShardedUnit::Travelling ShardedUnit::arriving_shard(Rank& rank, SiteId site) {
  Travelling own{shard_, {}, false};
  if (offloading_.device == host_device) {
    const Ticket updated = rank.event({stream_of_update(), {}, site});
    own.slice = rank.allocate(Purpose::communication, types_.stored, layout_.shard_elements(),
                              DeviceId{0}, home_of_shard());
    own.ready = rank.copy(shard_, own.slice, {copy_stream, {updated}, site});
    own.is_copy = true;
  }
  return own;
}

// Then what is narrower is converted there, beside the computation of the unit before it.
ShardedUnit::Travelling ShardedUnit::travelling_shard(Rank& rank, SiteId site, Ticket after) {
  const Travelling own = arriving_shard(rank, site);
  if (types_.stored == types_.gathered) {
    return own;
  }
  const Slice narrow = rank.allocate(Purpose::communication, types_.gathered,
                                     layout_.shard_elements(), DeviceId{0}, home_of_shard());
  const StreamId on = is_sharded() ? collectives_on_ : compute_stream;
  const Ticket narrowed =
      elementwise(rank, Kernel::cast, {own.slice}, {narrow}, 0, {on, {after, own.ready}, site});
  if (own.is_copy) {
    rank.event({collectives_on_, {narrowed}, site});
    rank.release(own.slice);
  }
  return {narrow, narrowed, true};
}

void ShardedUnit::gather(Rank& rank, const Exchange& exchange, Ticket after) {
  ensure(!gathered_, "a unit that is not gathered yet");
  gathered_ = true;
  if (is_whole()) {
    whole_ = shard_;
    bind_flat();
    return;
  }
  if (larger_part_) {
    gather_into_whole(rank, exchange, larger_part_->memory, after, larger_part_->made);
    return;
  }
  const Travelling own = travelling_shard(rank, exchange.site, after);
  if (!is_sharded()) {
    rank.event({compute_stream, {own.ready}, exchange.site});
    whole_ = own.slice;
    bind_flat();
    return;
  }
  gather_into_whole(rank, exchange, own.slice, after, own.ready);
  if (own.is_copy) {
    rank.release(own.slice);
  }
}

void ShardedUnit::gather_into_whole(Rank& rank, const Exchange& exchange, const Slice& part,
                                    Ticket after, Ticket ready) {
  const Purpose purpose = layout_.is_flat() ? Purpose::gathered : Purpose::communication;
  gather_site_ = exchange.site;
  whole_ = rank.allocate(purpose, types_.gathered, gathered_layout().gathered_elements());
  gather_done_ = rank.all_gather(exchange.group, part, whole_,
                                 {collectives_on_, {after, ready}, exchange.site});
  if (layout_.is_flat()) {
    bind_flat();
  }
}

ShardedUnit::Copy ShardedUnit::gather_copy(Rank& rank, const Exchange& exchange, Ticket after) {
  const Travelling own = arriving_shard(rank, exchange.site);
  Copy copy;
  copy.whole = rank.allocate(Purpose::gathered, types_.stored, layout_.gathered_elements());
  copy.done = rank.all_gather(exchange.group, own.slice, copy.whole,
                              {collectives_on_, {after, own.ready}, exchange.site});
  if (own.is_copy) {
    rank.release(own.slice);
  }
  return copy;
}

void ShardedUnit::show_shard() {
  for (size_t i = 0; i < parameters_.count(); ++i) {
    parameters_[i].tensor.value = Slice{};
  }
  shows_shard_ = true;
}

void ShardedUnit::show_whole() {
  if (shows_shard_) {
    bind_flat();
  }
}

void ShardedUnit::bind_flat() {
  shows_shard_ = false;
  for (size_t i = 0; i < parameters_.count(); ++i) {
    parameters_[i].tensor.value = whole_.part(layout_.offset_of(i), parameters_.elements(i));
  }
}

void ShardedUnit::await_gathered(Rank& rank, SiteId site) {
  show_whole();
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
  for (size_t i = 0; i < parameters_.count(); ++i) {
    Replica::Parameter& parameter = parameters_[i];
    parameter.tensor.value =
        rank.allocate(Purpose::gathered, types_.gathered, parameters_.elements(i));
    if (!parameters_.replica().plan().numerics) {
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
  if (parameters_.replica().plan().numerics) {
    elementwise(rank, Kernel::copy, from, to, 0, {}, site);
  } else {
    moving(rank, {whole_}, to, {compute_stream, {}, site});
  }
  rank.release(std::exchange(whole_, Slice{}));
  if (larger_part_) {
    rank.release(larger_part_->memory);
    larger_part_.reset();
  }
}

void ShardedUnit::free_but_part(Rank& rank, int32_t ranks, int32_t index, SiteId site) {
  LargerPart part{layout_.over_fewer(ranks), {}, {}};
  part.memory = rank.allocate(Purpose::gathered, types_.gathered, part.layout.shard_elements());
  std::vector<Slice> from;
  std::vector<Slice> to;
  for (const ShardPiece& piece : part.layout.pieces_of(index)) {
    const Slice& value = parameters_[piece.tensor].tensor.value;
    from.push_back(value.part(piece.first_element, piece.elements));
    to.push_back(part.memory.part(piece.position, piece.elements));
  }
  part.made = elementwise(rank, Kernel::copy, from, to, 0, {}, site);
  free(rank);
  larger_part_ = part;
}

void ShardedUnit::drop_part(Rank& rank) {
  if (larger_part_ && !gathered_) {
    rank.release(larger_part_->memory);
    larger_part_.reset();
  }
}

void ShardedUnit::free(Rank& rank) {
  if (!std::exchange(gathered_, false)) {
    return;
  }
  // Gathered ahead for a backward that does not come: the memory is free once it has arrived.
  if (const Ticket under_way = std::exchange(gather_done_, Ticket{})) {
    rank.event({compute_stream, {under_way}, gather_site_});
  }
  const bool owns_parts = !layout_.is_flat() && whole_.buffer == no_buffer;
  for (const size_t index : parameters_.indices()) {
    Slice& value = parameters_.replica().parameters()[index].tensor.value;
    if (owns_parts) {
      rank.release(value);
    }
    value = Slice{};
  }
  if (whole_.buffer != no_buffer && whole_.buffer != shard_.buffer) {
    rank.release(whole_);
  }
  whole_ = Slice{};
  shows_shard_ = false;
  gather_done_ = Ticket{};
}

}  // namespace lockstep
