#include "model/strategy/data_parallel/ddp_arguments.hpp"

#include <algorithm>
#include <array>

#include "model/strategy/exchange/first_weights.hpp"

namespace lockstep {

namespace {

constexpr ArgumentUse trainer = ArgumentUse::trainer;
constexpr ArgumentUse no_effect = ArgumentUse::no_effect;
constexpr ArgumentUse unmodelled = ArgumentUse::unmodelled;

// lightning/pytorch/strategies/ddp.py, torch/nn/parallel/distributed.py.
constexpr std::array ddp_rows{
    StrategyArgument{"find_unused_parameters", "bool", "false",
                     "looks in every forward for parameters that get no gradient",
                     ArgumentUse::strategy, "false; before Lightning 2.0 true"},
    StrategyArgument{"static_graph", "bool", "false",
                     "promises that every iteration uses the same parameters"},
    StrategyArgument{"bucket_cap_mb", "float", "null", "MiB of gradients in a bucket",
                     ArgumentUse::strategy, "null: 25, and 1 for the first bucket"},
    StrategyArgument{"broadcast_buffers", "bool", "true",
                     "rank 0's buffers are everybody's, at the beginning of each forward"},
    StrategyArgument{"init_sync", "bool", "true",
                     "compares the ranks' parameters at the start and sends those of rank 0; from "
                     "torch 2.7 on"},
    StrategyArgument{"seed_everything", "bool", "false",
                     "all ranks draw the same parameters, as where the scenario has this key"},
    StrategyArgument{"gradient_as_bucket_view", "bool", "false",
                     "gradients lie in the buckets, not beside them"},
    process_group_backend,
    process_group_timeout,
    ddp_comm_hook,
    ddp_comm_state,
    ddp_comm_wrapper,
    model_averaging_period,
    StrategyArgument{"model_averager", "", "null",
                     "HierarchicalModelAverager of torch, called after every step"},
    StrategyArgument{"outer_optimizer", "", "null",
                     "DiLoCo: lr, momentum and nesterov of the SGD that steps once every "
                     "model_averaging_period"},
    StrategyArgument{"start_method", "text", "popen",
                     "popen, spawn or fork: how processes begin, from Lightning 2.0 on", trainer},
    StrategyArgument{"check_reduction", "bool", "false", "torch no longer reads it", no_effect},
    StrategyArgument{"delay_all_reduce_named_params", "", "null",
                     "parameters that are reduced when the gradient of another one is ready",
                     unmodelled},
    StrategyArgument{"skip_all_reduce_unused_params", "bool", "false",
                     "leaves out buckets of which no rank has used a parameter", unmodelled},
    StrategyArgument{"join", "bool", "false",
                     "train under torch's Join context, for ranks of uneven batches"},
    StrategyArgument{"divide_by_initial_world_size", "bool", "true",
                     "under `join`: gradients of ranks that have ended count as zeros"},
    StrategyArgument{"throw_on_early_termination", "bool", "false",
                     "under `join`: all raise as soon as one rank has ended"},
};

// Of torch's Join context, of its averagers and of DiLoCo, which Lightning does not pass on: they
// belong to the strategy that they change.
constexpr std::array<std::string_view, 6> not_lightnings = {"join",
                                                            "divide_by_initial_world_size",
                                                            "throw_on_early_termination",
                                                            "model_averager",
                                                            "outer_optimizer",
                                                            "seed_everything"};

}  // namespace

ArgumentRows ddp_arguments() { return ddp_rows; }

// pytorch_lightning/strategies/ddp_spawn.py, pre_configure_ddp.
std::vector<StrategyArgument> spawned_ddp_arguments() {
  std::vector<StrategyArgument> rows;
  for (const StrategyArgument& row : ddp_rows) {
    if (row.name == start_method_of_spawn.name) {
      rows.push_back(start_method_of_spawn);
    } else if (row.name == "find_unused_parameters") {
      rows.push_back(row.with_default("true"));
    } else if (std::ranges::find(not_lightnings, row.name) == not_lightnings.end()) {
      rows.push_back(row);
    }
  }
  return rows;
}

// pytorch_lightning/strategies/ddp2.py. Hooks are not modelled under it, nor what came later.
std::vector<StrategyArgument> ddp2_arguments() {
  std::vector<StrategyArgument> rows;
  for (const StrategyArgument& row : ddp_rows) {
    const bool is_left_out =
        row.name.starts_with("ddp_comm_") || row.name == model_averaging_period.name ||
        row.name == init_sync_argument;  // torch has it long after the end of ddp2
    if (row.name != start_method_of_spawn.name &&
        std::ranges::find(not_lightnings, row.name) == not_lightnings.end()) {
      rows.push_back(is_left_out                            ? row.with_use(ArgumentUse::unmodelled)
                     : row.name == "find_unused_parameters" ? row.with_default("true")
                                                            : row);
    }
  }
  return rows;
}

}  // namespace lockstep
