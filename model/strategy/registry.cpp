#include "model/strategy/registry.hpp"

#include "model/strategy/data_parallel/ddp.hpp"
#include "model/strategy/data_parallel/dp.hpp"
#include "model/strategy/data_parallel/single.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/fairscale/fairscale.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp2.hpp"

namespace lockstep {

const StrategyEntry* StrategyRegistry::find(std::string_view name) const {
  for (const StrategyEntry& entry : entries_) {
    if (entry.name == name || entry.class_name == name) {
      return &entry;
    }
  }
  return nullptr;
}

StrategyTraits StrategyRegistry::traits_of(std::string_view name) const {
  const StrategyEntry* entry = find(name);
  return entry == nullptr ? StrategyTraits() : entry->traits;
}

StrategyRegistry standard_strategies() {
  StrategyRegistry registry;
  registry.add(single_device());
  registry.add(data_parallel());
  registry.add(distributed_data_parallel());
  registry.add(fully_sharded_data_parallel());
  registry.add(native_fully_sharded());
  registry.add(model_parallel());
  registry.add(sharded_data_parallel());
  registry.add(fairscale_fully_sharded());
  registry.add(deepspeed());
  // They differ from the others in how their processes begin, which is the trainer's matter.
  for (const char* name : {"ddp_spawn", "ddp_fork", "ddp_notebook"}) {
    StrategyEntry entry = distributed_data_parallel();
    entry.name = name;
    registry.add(std::move(entry));
  }
  StrategyEntry spawned = sharded_data_parallel();
  spawned.name = "ddp_sharded_spawn";
  spawned.class_name = "DDPSpawnShardedStrategy";
  registry.add(std::move(spawned));
  return registry;
}

StrategyRegistry all_strategies() {
  StrategyRegistry registry = standard_strategies();
  for (StrategyEntry& entry : additional_strategies()) {
    registry.add(std::move(entry));
  }
  return registry;
}

}  // namespace lockstep
