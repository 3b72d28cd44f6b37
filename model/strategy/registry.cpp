#include "model/strategy/registry.hpp"

#include "model/strategy/data_parallel/bagua/bagua.hpp"
#include "model/strategy/data_parallel/ddp.hpp"
#include "model/strategy/data_parallel/ddp2.hpp"
#include "model/strategy/data_parallel/ddp_arguments.hpp"
#include "model/strategy/data_parallel/dp.hpp"
#include "model/strategy/data_parallel/horovod/horovod.hpp"
#include "model/strategy/data_parallel/single.hpp"
#include "model/strategy/data_parallel/xla/xla.hpp"
#include "model/strategy/megatron/megatron.hpp"
#include "model/strategy/pipeline/naive_model_parallel.hpp"
#include "model/strategy/pipeline/torch_pipeline.hpp"
#include "model/strategy/server/parameter_server.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/fairscale/fairscale.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp2.hpp"
#include "model/strategy/torchtitan/torchtitan.hpp"

namespace lockstep {

namespace {

const ClassOfStrategy* find_class(const StrategyEntry& entry, std::string_view name) {
  for (const ClassOfStrategy& other : entry.other_classes) {
    if (other.name == name) {
      return &other;
    }
  }
  return nullptr;
}

}  // namespace

TrainerMembership StrategyEntry::membership_of(const StrategyArguments& given,
                                               const Place& place) const {
  if (membership) {
    return membership(given, place);
  }
  return traits.is_one_process() ? TrainerMembership::of_one_process()
                                 : TrainerMembership::of_every_rank(place);
}

const std::vector<StrategyArgument>& StrategyEntry::arguments_of(
    std::string_view class_of_it) const {
  const ClassOfStrategy* other = find_class(*this, class_of_it);
  return other == nullptr ? arguments : other->arguments;
}

bool StrategyEntry::reads(std::string_view argument) const {
  const StrategyArgument* row = find_argument(arguments, argument);
  return row != nullptr && row->use == ArgumentUse::strategy;
}

const StrategyEntry* StrategyRegistry::find(std::string_view name) const {
  for (const StrategyEntry& entry : entries_) {
    if (entry.name == name || entry.class_name == name) {
      return &entry;
    }
  }
  return nullptr;
}

const std::vector<StrategyArgument>* StrategyRegistry::arguments_of_class(
    std::string_view class_name) const {
  for (const StrategyEntry& entry : entries_) {
    if (entry.class_name == class_name || find_class(entry, class_name) != nullptr) {
      return &entry.arguments_of(class_name);
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
  registry.add(data_parallel_in_nodes());
  registry.add(fully_sharded_data_parallel());
  registry.add(native_fully_sharded());
  registry.add(model_parallel());
  registry.add(sharded_data_parallel());
  registry.add(fairscale_fully_sharded());
  registry.add(deepspeed());
  registry.add(horovod());
  registry.add(bagua());
  registry.add(xla());
  registry.add(single_xla());
  registry.add(naive_model_parallel());
  registry.add(pipeline_parallel());
  registry.add(megatron());
  registry.add(torchtitan());
  registry.add(parameter_server());
  // They differ from the others in how their processes begin, which is the trainer's matter.
  for (const char* name : {"ddp_spawn", "ddp_fork", "ddp_notebook"}) {
    StrategyEntry entry = distributed_data_parallel();
    entry.name = name;
    entry.other_classes = {{"DDPSpawnStrategy", spawned_ddp_arguments()}};
    registry.add(std::move(entry));
  }
  registry.add(spawned_sharded_data_parallel());
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
