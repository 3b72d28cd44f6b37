#include <array>

#include "model/strategy/data_parallel/xla/xla.hpp"
#include "model/strategy/data_parallel/xla/xla_sites.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

// lightning/pytorch/strategies/xla.py, and tpu_spawn.py of 1.x. What it does not name it takes and
// ignores.
constexpr std::array xla_rows{
    StrategyArgument{"debug", "bool", "false", "sets PT_XLA_DEBUG, which prints why graphs compile",
                     ArgumentUse::no_effect},
    StrategyArgument{"sync_module_states", "bool", "true",
                     "rank 0's parameters and buffers are everybody's", ArgumentUse::strategy,
                     "true, from Lightning 2.1 on"},
    StrategyArgument{"saves_on_all_ranks", "bool", "false", "all ranks meet in xm.save",
                     ArgumentUse::by_name},
    StrategyArgument{"has_root", "bool", "true", "a broadcast sends what its source has",
                     ArgumentUse::by_name},
};

XlaOptions options_from(const StrategyArguments& arguments) {
  const StrategyArgumentReader read(arguments, xla_rows);
  XlaOptions options;
  options.sync_module_states = read.boolean("sync_module_states");
  options.saves_on_all_ranks = read.boolean("saves_on_all_ranks");
  options.has_root = read.boolean("has_root");
  return options;
}

StrategyEntry entry_of(ProcessLayout layout) {
  StrategyEntry entry;
  entry.traits.layout = layout;
  entry.traits.drives_xla = true;
  entry.traits.holds_whole_state = true;
  entry.traits.takes_tensor_norms = true;
  entry.traits.statistics = StatisticsSharing::ignored;
  add_steps(xla_sites::every_step, entry.sites);
  return entry;
}

}  // namespace

StrategyEntry xla() {
  StrategyEntry entry = entry_of(ProcessLayout::one_device_each);
  entry.name = "xla";
  entry.class_name = "XLAStrategy";
  entry.traits.world_is_data_parallel = true;
  entry.arguments = {xla_rows.begin(), xla_rows.end()};
  entry.other_classes = {{"TPUSpawnStrategy", {xla_rows.front()}}};
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<XlaDataParallel>(plan, options_from(arguments));
  };
  return entry;
}

StrategyEntry single_xla() {
  StrategyEntry entry = entry_of(ProcessLayout::one_for_one_device);
  entry.name = "single_xla";
  entry.class_name = "SingleDeviceXLAStrategy";
  entry.arguments = {
      StrategyArgument{"device", "", "null",
                       "the device; `accelerator` and `devices` of the Trainer name it",
                       ArgumentUse::unmodelled, "null: that of `devices`"},
      xla_rows.front()};
  entry.other_classes = {{"SingleTPUStrategy", entry.arguments}};
  entry.make = [](const TrainingPlan& plan, const StrategyArguments&) {
    return std::make_unique<XlaDataParallel>(plan, XlaOptions{.is_distributed = false});
  };
  return entry;
}

}  // namespace lockstep
