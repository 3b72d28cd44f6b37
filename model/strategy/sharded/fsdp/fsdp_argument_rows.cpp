// lightning/pytorch/strategies/fsdp.py, torch/distributed/fsdp/fully_sharded_data_parallel.py.
#include "model/strategy/sharded/fsdp/fsdp_argument_rows.hpp"

#include <array>

#include "model/strategy/sharded/trainer_objects.hpp"

namespace lockstep {

namespace {

constexpr StrategyArgument sharding_row{
    "sharding_strategy", "text", "FULL_SHARD",
    "what is divided: FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2"};
constexpr StrategyArgument wrap_row{"auto_wrap_policy",
                                    "",
                                    "null",
                                    "modules that are units: classes, blocks, or a policy",
                                    ArgumentUse::strategy,
                                    "null: the whole model is one unit"};
constexpr StrategyArgument offload_row{
    "cpu_offload", "", "false", "shards, their gradients and optimizer state are in host memory"};
constexpr StrategyArgument prefetch_row{"backward_prefetch", "text", "BACKWARD_PRE",
                                        "when the backward's next unit is gathered: BACKWARD_PRE, "
                                        "BACKWARD_POST, or null: not ahead"};
constexpr StrategyArgument forward_prefetch_row{
    "forward_prefetch", "bool", "false", "gathers the next unit before the forward of this one"};
constexpr StrategyArgument limit_row{
    "limit_all_gathers", "bool", "true",
    "the host waits, so that at most two units are gathered ahead"};
constexpr StrategyArgument mixed_row{
    "mixed_precision",
    "",
    "null",
    "types of gathered parameters and of gradients: {param_dtype, reduce_dtype}",
    ArgumentUse::strategy,
    "null: as `precision` says"};
constexpr StrategyArgument original_row{
    "use_orig_params", "bool", "true",
    "optimizers see parameters, each of which begins at an aligned place, not flat ones"};
constexpr StrategyArgument states_row{
    "sync_module_states", "bool", "false",
    "rank 0's parameters and buffers are everybody's before they are divided"};
constexpr StrategyArgument checkpointing_row{
    "activation_checkpointing", "", "null",
    "older: modules whose forward runs again in the backward: classes, or blocks"};

constexpr std::array fsdp_rows{
    sharding_row,
    wrap_row,
    offload_row,
    prefetch_row,
    forward_prefetch_row,
    limit_row,
    mixed_row,
    original_row,
    states_row,
    StrategyArgument{"state_dict_type", "text", "full",
                     "full: rank 0 writes a checkpoint; sharded: every rank its part"},
    StrategyArgument{"activation_checkpointing_policy", "", "null",
                     "modules whose forward runs again in the backward: classes, blocks, a policy"},
    checkpointing_row,
    StrategyArgument{"device_mesh", "", "null", "[replicas, shards] of a HYBRID_SHARD",
                     ArgumentUse::strategy, "null: shards in a node"},
    StrategyArgument{"process_group", "list", "null",
                     "[shards, replicas]: ranks in the two groups of a HYBRID_SHARD, in a tuple",
                     ArgumentUse::strategy, "null: shards in a node"},
    process_group_backend,
    process_group_timeout,
    StrategyArgument{"ignored_modules", "", "null",
                     "classes or layers that FSDP leaves alone, whole on every rank"},
    StrategyArgument{"ignored_states", "", "null", "the same; newer"},
    StrategyArgument{"param_init_fn", "", "null", "draws parameters that are on the meta device",
                     ArgumentUse::unmodelled},
    trainer_objects[0],
    trainer_objects[1],
    trainer_objects[2],
    trainer_objects[3],
    trainer_objects[4],
    StrategyArgument{"gathers_optimizer_state", "bool", "true",
                     "a checkpoint has the optimizer state of all ranks", ArgumentUse::by_name},
    StrategyArgument{"clips_by_own_norm", "bool", "false",
                     "torch's clip_grad_norm_ is called, by which a rank sees its own shards alone",
                     ArgumentUse::by_name},
    StrategyArgument{"default_process_group", "bool", "false",
                     "torch is handed the group of all ranks, which hybrid sharding refuses",
                     ArgumentUse::by_name},
    StrategyArgument{"wide_mixed_precision", "bool", "false",
                     "mixed precision gathers fp32, and reduces in 16 bits", ArgumentUse::by_name},
};

// Of 1.7 to 1.9, strategies/fully_sharded_native.py, with the defaults of torch up to 2.0. They are
// also those of its names in model/trainer/framework/strategy_choice.cpp.
constexpr std::array native_rows{
    offload_row,
    prefetch_row.with_default("null"),
    mixed_row,
    checkpointing_row,
    sharding_row,
    wrap_row,
    forward_prefetch_row,
    limit_row.with_default("false"),
    original_row.with_default("false"),
    states_row,
    process_group_backend,
    trainer_objects[0],
    trainer_objects[1],
    trainer_objects[2],
    trainer_objects[3],
    trainer_objects[4],
};

}  // namespace

ArgumentRows fsdp_arguments() { return fsdp_rows; }

ArgumentRows native_arguments() { return native_rows; }

}  // namespace lockstep
