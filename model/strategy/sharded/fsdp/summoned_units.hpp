#pragma once

#include <vector>

#include "model/strategy/sharded/fsdp/sharded_unit.hpp"

namespace lockstep {

/// Units whose parameters are read where summon_full_params has brought them.
class SummonedUnits {
 public:
  /// Gathers the unit as it is stored, and lets its parameters be read there. The unit stays where
  /// it is until end().
  Program gather(Rank& rank, ShardedUnit& unit, ShardedUnit::Exchange exchange, Ticket after);
  /// Of a unit that is gathered, and of which modules have views of the shard.
  void show_gathered(ShardedUnit& unit);
  /// Of a unit that is not sharded and lies in host memory: it is read there.
  void show(ShardedUnit& unit);
  /// Their parameters are again where they were before. What is written back to the shards is not
  /// read here.
  void end(Rank& rank);

 private:
  struct Summoned {
    ShardedUnit* unit = nullptr;
    Slice whole;                ///< none: the rank holds them whole itself
    std::vector<Slice> former;  ///< values of its parameters before
    bool shows_shard = false;   ///< afterwards
  };

  std::vector<Summoned> units_;  ///< in the order in which they were entered
};

}  // namespace lockstep
