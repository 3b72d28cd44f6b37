// What NeMo's MegatronStrategy takes.
#include <array>

#include "model/strategy/megatron/megatron_arguments.hpp"
#include "model/strategy/megatron/megatron_keys.hpp"

namespace lockstep {

namespace {

using enum ArgumentUse;
using namespace megatron_keys;

// nemo/lightning/pytorch/strategies/megatron_strategy.py; the batch sizes are those that its users
// give the data module (nemo/collections/llm/gpt/data/mock.py).
constexpr std::array megatron_rows{
    StrategyArgument{tensor_size, "int", "1",
                     "neighbouring ranks that compute each layer together"},
    StrategyArgument{pipeline_size, "int", "1", "ranks of one pipeline"},
    StrategyArgument{virtual_size, "int", "null", "stages per rank, for the interleaved schedule",
                     strategy, "null: one stage, 1F1B"},
    StrategyArgument{context_size, "int", "1", "ranks that divide the positions of each sample"},
    StrategyArgument{context_type, "text", "p2p",
                     "of the model's configuration: p2p (a ring), a2a (by heads) or all_gather"},
    StrategyArgument{"hierarchical_context_parallel_sizes", "", "null",
                     "of the model's configuration: groups of cp_comm_type a2a+p2p", unmodelled},
    StrategyArgument{by_positions, "bool", "false",
                     "norms and dropouts get a part of the positions on each tensor rank"},
    StrategyArgument{expert_size, "int", "1", "ranks that divide the experts of each layer"},
    StrategyArgument{expert_tensor_size, "int", "null", "ranks that compute each expert together",
                     strategy, "null: tensor_model_parallel_size"},
    StrategyArgument{"moe_extended_tp", "bool", "false", "experts are cut over tensor ranks, too",
                     unmodelled},
    StrategyArgument{"use_tp_pp_dp_mapping", "bool", "false",
                     "stages are neighbours, and replicas far apart", unmodelled},
    StrategyArgument{"num_distributed_optimizer_instances", "int", "1",
                     "groups of replicas that each divide the optimizer", unmodelled},
    StrategyArgument{"microbatch_group_size_per_vp_stage", "int", "null",
                     "micro-batches in a row of one stage in turns", unmodelled,
                     "null: pipeline_model_parallel_size"},
    StrategyArgument{"account_for_embedding_in_pipeline_split", "bool", "false",
                     "the embedding counts as a layer of the first stage", unmodelled},
    StrategyArgument{"account_for_loss_in_pipeline_split", "bool", "false",
                     "the loss counts as a layer of the last stage", unmodelled},
    StrategyArgument{"encoder_tensor_model_parallel_size", "int", "0", "tensor ranks of an encoder",
                     unmodelled},
    StrategyArgument{"encoder_pipeline_model_parallel_size", "int", "0", "stages of an encoder",
                     unmodelled},
    StrategyArgument{"use_te_rng_tracker", "bool", "false", "who draws random numbers", no_effect},
    StrategyArgument{"use_sharp", "bool", "false", "switches add up what replicas send",
                     unmodelled},
    StrategyArgument{"megatron_log_level", "int", "0", "what is printed", no_effect},
    StrategyArgument{"ddp", "", "megatron",
                     "megatron, or a DistributedDataParallelConfig: overlaps, bucket_size, .."},
    StrategyArgument{micro_batch_key, "int", "4", "of the data module: samples of one micro-batch"},
    StrategyArgument{global_batch_key, "int", "8",
                     "of the data module: samples of one step on all replicas together"},
    StrategyArgument{"find_unused_parameters", "bool", "false",
                     "of torch's DistributedDataParallel, which is not used", no_effect},
    StrategyArgument{"pipeline_dtype", "text", "null", "type of what travels between stages",
                     unmodelled, "null: that of the activations"},
    StrategyArgument{"lazy_init", "bool", "false", "how parameters are made", no_effect},
    StrategyArgument{"setup_optimizers", "bool", "true", "false: the script sets them up",
                     unmodelled},
    StrategyArgument{"init_model_parallel", "bool", "true", "false: the script makes the groups",
                     unmodelled},
    StrategyArgument{"ckpt_load_optimizer", "bool", "true", "a checkpoint's optimizer is read",
                     unmodelled},
    StrategyArgument{"ckpt_save_optimizer", "bool", "true", "a checkpoint holds the optimizer",
                     unmodelled},
    StrategyArgument{"save_ckpt_format", "text", "torch_dist", "torch_dist or zarr", unmodelled},
    StrategyArgument{"ckpt_async_save", "bool", "false", "checkpoints are written beside the steps",
                     unmodelled},
    StrategyArgument{"ckpt_torch_dist_multiproc", "int", "null", "processes that write",
                     unmodelled},
    StrategyArgument{"ckpt_assume_constant_structure", "bool", "false",
                     "the structure of checkpoints is remembered", no_effect},
    StrategyArgument{"ckpt_parallel_save", "bool", "true",
                     "replicas share the writing of what they hold alike", unmodelled},
    StrategyArgument{"ckpt_parallel_save_within_dp", "bool", "false",
                     "the same inside of a replica group", unmodelled},
    StrategyArgument{"ckpt_parallel_load", "bool", "false", "replicas share the reading",
                     unmodelled},
    StrategyArgument{"ckpt_parallel_save_optim", "bool", "true",
                     "shards of the optimizer are written where they are", unmodelled},
    StrategyArgument{"ckpt_load_directly_on_device", "bool", "true", "how zarr is read", no_effect},
    StrategyArgument{"replace_progress_bar", "bool", "true", "how progress is printed", no_effect},
    StrategyArgument{"progress_interval", "int", "1", "how often it is printed", no_effect},
    StrategyArgument{"restore_config", "", "null", "a checkpoint to begin with", unmodelled},
    process_group_backend,
    process_group_timeout,
};

}  // namespace

ArgumentRows megatron_arguments() { return megatron_rows; }

}  // namespace lockstep
