#include "model/strategy/registry.hpp"

#include "model/strategy/ddp.hpp"
#include "model/strategy/dp.hpp"
#include "model/strategy/sharded/fsdp.hpp"
#include "model/strategy/single.hpp"

namespace lockstep {

const StrategyEntry* StrategyRegistry::find(const std::string& name) const {
  for (const StrategyEntry& entry : entries_) {
    if (entry.name == name || entry.class_name == name) {
      return &entry;
    }
  }
  return nullptr;
}

StrategyRegistry standard_strategies() {
  StrategyRegistry registry;
  registry.add(single_device());
  registry.add(data_parallel());
  registry.add(distributed_data_parallel());
  registry.add(fully_sharded_data_parallel());
  // They differ from ddp in how their processes begin, which is the trainer's matter.
  for (const char* name : {"ddp_spawn", "ddp_fork", "ddp_notebook"}) {
    StrategyEntry entry = distributed_data_parallel();
    entry.name = name;
    registry.add(std::move(entry));
  }
  return registry;
}

}  // namespace lockstep
