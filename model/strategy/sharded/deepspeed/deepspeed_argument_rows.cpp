// lightning/pytorch/strategies/deepspeed.py. Sizes are in elements, not bytes.
#include "model/strategy/sharded/deepspeed/deepspeed_argument_rows.hpp"

#include <array>

namespace lockstep {

namespace {

constexpr ArgumentUse no_effect = ArgumentUse::no_effect;

constexpr std::array deepspeed_rows{
    StrategyArgument{"zero_optimization", "bool", "true", "false is stage 0"},
    StrategyArgument{"stage", "int", "2",
                     "what is divided: 1 optimizer state, 2 gradients too, 3 parameters too"},
    StrategyArgument{"remote_device", "text", "null", "where the model is made: cpu or nvme",
                     no_effect, "null: on the GPU; before Lightning 2.0 cpu"},
    StrategyArgument{"offload_optimizer", "bool", "false",
                     "optimizer state is in host memory, and the update runs there"},
    StrategyArgument{"offload_parameters", "bool", "false",
                     "at stage 3 the parts of parameters are in host memory"},
    StrategyArgument{"offload_params_device", "text", "cpu",
                     "cpu, or nvme: offloaded parameters go on to the drive"},
    StrategyArgument{"nvme_path", "text", "/local_nvme", "folder on the drive", no_effect},
    StrategyArgument{"params_buffer_count", "int", "5",
                     "buffers in host memory between the drive and the GPU"},
    StrategyArgument{"params_buffer_size", "int", "100000000", "elements of such a buffer"},
    StrategyArgument{"max_in_cpu", "int", "1000000000",
                     "elements of parameters that stay in host memory beside the drive"},
    StrategyArgument{"offload_optimizer_device", "text", "cpu",
                     "cpu, or nvme: at stage 3 optimizer state goes on to the drive"},
    StrategyArgument{"optimizer_buffer_count", "int", "4",
                     "buffers in host memory between the drive and the update"},
    StrategyArgument{"block_size", "int", "1048576", "bytes that the drive is given at a time"},
    StrategyArgument{"queue_depth", "int", "8", "requests that the drive has at a time", no_effect},
    StrategyArgument{"single_submit", "bool", "false", "gives the drive requests one by one",
                     no_effect},
    StrategyArgument{"overlap_events", "bool", "true",
                     "gives the drive requests before earlier ones have ended", no_effect},
    StrategyArgument{"thread_count", "int", "1",
                     "DeepSpeed reads `intra_op_parallelism` of `aio` in its place", no_effect},
    StrategyArgument{"pin_memory", "bool", "false", "host memory of what is offloaded is pinned",
                     no_effect},
    StrategyArgument{"sub_group_size", "int", "1000000000000",
                     "elements that a step at stage 3 updates together"},
    StrategyArgument{"contiguous_gradients", "bool", "true",
                     "gradients are copied to a buffer as they come"},
    StrategyArgument{"overlap_comm", "bool", "true",
                     "gradients are reduced while the backward still runs"},
    StrategyArgument{"allgather_partitions", "bool", "true",
                     "updated parameters are gathered, not broadcast part by part", no_effect},
    StrategyArgument{"reduce_scatter", "bool", "true",
                     "each rank averages its own part of a bucket, not all of it"},
    StrategyArgument{"allgather_bucket_size", "int", "200000000",
                     "elements that a gather of updated parameters takes at a time", no_effect},
    StrategyArgument{"reduce_bucket_size", "int", "200000000", "elements of gradients in a bucket"},
    StrategyArgument{"zero_allow_untested_optimizer", "bool", "true",
                     "takes optimizers that DeepSpeed has not tried", no_effect},
    StrategyArgument{"logging_batch_size_per_gpu", "", "auto", "batch size in DeepSpeed's log",
                     no_effect, "auto: that of the data"},
    StrategyArgument{"config", "", "null", "DeepSpeed's own configuration: a map, or a JSON file",
                     ArgumentUse::strategy, "null: made of these arguments"},
    StrategyArgument{"logging_level", "", "30", "of DeepSpeed's log", no_effect, "30: warnings"},
    StrategyArgument{"loss_scale", "float", "0", "under fp16; 0: it adapts itself"},
    StrategyArgument{"initial_scale_power", "int", "16",
                     "the loss scale begins as 2 to this power"},
    StrategyArgument{"loss_scale_window", "int", "1000",
                     "steps without overflow after which the loss scale doubles"},
    StrategyArgument{"hysteresis", "int", "2", "overflows after which the loss scale halves"},
    StrategyArgument{"min_loss_scale", "int", "1", "training ends with an overflow at this scale"},
    StrategyArgument{"partition_activations", "bool", "false",
                     "of DeepSpeed's own checkpointing; true is not modelled"},
    StrategyArgument{"cpu_checkpointing", "bool", "false",
                     "of DeepSpeed's own checkpointing; true is not modelled"},
    StrategyArgument{"contiguous_memory_optimization", "bool", "false",
                     "of DeepSpeed's own checkpointing; true is not modelled"},
    StrategyArgument{"synchronize_checkpoint_boundary", "bool", "false",
                     "of DeepSpeed's own checkpointing; true is not modelled"},
    StrategyArgument{"load_full_weights", "bool", "false",
                     "at stage 3 a checkpoint that is read has whole parameters", no_effect},
    process_group_backend,
    process_group_timeout,
    StrategyArgument{"exclude_frozen_parameters", "bool", "false",
                     "a checkpoint leaves frozen parameters out"},
    StrategyArgument{"save_full_weights", "bool", "true",
                     "Lightning 1.4: at stage 3 a checkpoint has whole parameters", no_effect},
    StrategyArgument{"cpu_offload", "bool", "false", "Lightning 1.4: offload_optimizer"},
    StrategyArgument{"cpu_offload_params", "bool", "false", "Lightning 1.4: offload_parameters"},
    StrategyArgument{"cpu_offload_use_pin_memory", "bool", "false", "Lightning 1.4: pin_memory"},
    StrategyArgument{"partition_module", "bool", "true",
                     "Lightning 1.4: stage 3 divides the module before the engine starts",
                     ArgumentUse::unmodelled},
};

}  // namespace

ArgumentRows deepspeed_arguments() { return deepspeed_rows; }

}  // namespace lockstep
