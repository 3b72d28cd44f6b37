#include "model/strategy/sharded/fsdp/summoned_units.hpp"

#include <utility>

namespace lockstep {

Program SummonedUnits::gather(Rank& rank, ShardedUnit& unit, ShardedUnit::Exchange exchange,
                              Ticket after) {
  const ShardedUnit::Copy copy = unit.gather_copy(rank, exchange, after);
  co_await rank.settle(copy.done);
  Summoned summoned{&unit, copy.whole, {}};
  const WholeParameters& parameters = unit.whole_parameters();
  for (size_t i = 0; i < parameters.count(); ++i) {
    Slice& value = parameters[i].tensor.value;
    summoned.former.push_back(value);
    value = copy.whole.part(unit.layout().offset_of(i), parameters.elements(i));
  }
  units_.push_back(std::move(summoned));
}

void SummonedUnits::show_gathered(ShardedUnit& unit) {
  unit.show_whole();
  units_.push_back({&unit, {}, {}, true});
}

void SummonedUnits::show(ShardedUnit& unit) {
  Summoned summoned{&unit, {}, {}};
  const WholeParameters& parameters = unit.whole_parameters();
  for (size_t i = 0; i < parameters.count(); ++i) {
    summoned.former.push_back(parameters[i].tensor.value);
  }
  for (const ShardedUnit::Piece& piece : unit.pieces()) {
    parameters[parameters.number_of(piece.parameter)].tensor.value = piece.tensor.value;
  }
  units_.push_back(std::move(summoned));
}

// Units that were entered last are left first.
void SummonedUnits::end(Rank& rank) {
  for (; !units_.empty(); units_.pop_back()) {
    const Summoned& summoned = units_.back();
    if (summoned.shows_shard) {
      summoned.unit->show_shard();
      continue;
    }
    const WholeParameters& parameters = summoned.unit->whole_parameters();
    for (size_t i = 0; i < parameters.count(); ++i) {
      parameters[i].tensor.value = summoned.former[i];
    }
    if (summoned.whole.buffer != no_buffer) {
      rank.release(summoned.whole);
    }
  }
}

}  // namespace lockstep
