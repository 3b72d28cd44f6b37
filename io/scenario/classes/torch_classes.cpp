#include <array>

#include "io/scenario/classes/catalogue_tables.hpp"

// Constructors of torch.optim, torch.optim.lr_scheduler and torch.nn (PyTorch 2.6), and the options
// of the launchers that decide how many processes there are.

namespace lockstep {
namespace {

// Behind torch's own arguments: the scenario's.
#define LOCKSTEP_OPTIMIZER \
  " name:text module:text set_to_none:bool scaling:text base_lr:float base_batch_size:int"
#define LOCKSTEP_SCHEDULER " optimizer:text monitor:text interval:text frequency:int strict:bool"

constexpr auto torch_optimizers = std::to_array<ClassRow>({
    {"SGD",
     "lr:float momentum:float dampening:float weight_decay:float nesterov:bool maximize:bool "
     "foreach:bool differentiable:bool fused:bool" LOCKSTEP_OPTIMIZER},
    {"Adam",
     "lr:float betas:list eps:float weight_decay:float amsgrad:bool foreach:bool maximize:bool "
     "capturable:bool differentiable:bool fused:bool" LOCKSTEP_OPTIMIZER},
    {"AdamW",
     "lr:float betas:list eps:float weight_decay:float amsgrad:bool foreach:bool maximize:bool "
     "capturable:bool differentiable:bool fused:bool" LOCKSTEP_OPTIMIZER},
    {"DeepSpeedCPUAdam",
     "lr:float bias_correction:bool betas:list eps:float weight_decay:float amsgrad:bool "
     "adamw_mode:bool fp32_optimizer_states:bool" LOCKSTEP_OPTIMIZER},
    {"FusedAdam",
     "lr:float bias_correction:bool betas:list eps:float adam_w_mode:bool weight_decay:float "
     "amsgrad:bool set_grad_none:bool" LOCKSTEP_OPTIMIZER},
    {"Adagrad",
     "lr:float lr_decay:float weight_decay:float initial_accumulator_value:float eps:float "
     "foreach:bool maximize:bool differentiable:bool fused:bool" LOCKSTEP_OPTIMIZER},
    {"Adadelta",
     "lr:float rho:float eps:float weight_decay:float foreach:bool capturable:bool maximize:bool "
     "differentiable:bool" LOCKSTEP_OPTIMIZER},
    {"Adamax",
     "lr:float betas:list eps:float weight_decay:float foreach:bool maximize:bool "
     "differentiable:bool capturable:bool" LOCKSTEP_OPTIMIZER},
    {"NAdam",
     "lr:float betas:list eps:float weight_decay:float momentum_decay:float "
     "decoupled_weight_decay:bool foreach:bool maximize:bool capturable:bool "
     "differentiable:bool" LOCKSTEP_OPTIMIZER},
    {"RAdam",
     "lr:float betas:list eps:float weight_decay:float decoupled_weight_decay:bool foreach:bool "
     "maximize:bool capturable:bool differentiable:bool" LOCKSTEP_OPTIMIZER},
    {"RMSprop",
     "lr:float alpha:float eps:float weight_decay:float momentum:float centered:bool "
     "capturable:bool foreach:bool maximize:bool differentiable:bool" LOCKSTEP_OPTIMIZER},
    {"Rprop",
     "lr:float etas:list step_sizes:list capturable:bool foreach:bool maximize:bool "
     "differentiable:bool" LOCKSTEP_OPTIMIZER},
    {"ASGD",
     "lr:float lambd:float alpha:float t0:float weight_decay:float foreach:bool maximize:bool "
     "differentiable:bool capturable:bool" LOCKSTEP_OPTIMIZER},
    {"Lion",
     "lr:float betas:list weight_decay:float use_triton:bool "
     "decoupled_weight_decay:bool" LOCKSTEP_OPTIMIZER},
    {"FusedLion", "lr:float betas:list weight_decay:float set_grad_none:bool" LOCKSTEP_OPTIMIZER},
    {"DeepSpeedCPULion",
     "lr:float betas:list weight_decay:float fp32_optimizer_states:bool" LOCKSTEP_OPTIMIZER},
    {"DeepSpeedCPUAdagrad",
     "lr:float eps:float weight_decay:float amsgrad:bool "
     "fp32_optimizer_states:bool" LOCKSTEP_OPTIMIZER},
    {"Adafactor",
     "lr:float beta2_decay:float eps:list d:float weight_decay:float foreach:bool "
     "maximize:bool" LOCKSTEP_OPTIMIZER},
    {"Lamb",
     "lr:float betas:list eps:float weight_decay:float clamp_value:float adam:bool "
     "debias:bool" LOCKSTEP_OPTIMIZER},
    {"QAdamOptimizer",
     "lr:float warmup_steps:int betas:list eps:float weight_decay:float" LOCKSTEP_OPTIMIZER},
    {"ZeroRedundancyOptimizer",
     "optimizer_class process_group parameters_as_bucket_view:bool overlap_with_ddp:bool lr:float "
     "momentum:float betas:list eps:float weight_decay:float dampening:float nesterov:bool "
     "maximize:bool amsgrad:bool lr_decay:float initial_accumulator_value:float rho:float "
     "momentum_decay:float decoupled_weight_decay:bool alpha:float centered:bool etas:list "
     "step_sizes:list lambd:float t0:float" LOCKSTEP_OPTIMIZER},
});

constexpr auto torch_schedulers = std::to_array<ClassRow>({
    {"StepLR", "step_size:int gamma:float last_epoch:int" LOCKSTEP_SCHEDULER},
    {"MultiStepLR", "milestones:list gamma:float last_epoch:int" LOCKSTEP_SCHEDULER},
    {"ConstantLR", "factor:float total_iters:int last_epoch:int" LOCKSTEP_SCHEDULER},
    {"LinearLR",
     "start_factor:float end_factor:float total_iters:int last_epoch:int" LOCKSTEP_SCHEDULER},
    {"ExponentialLR", "gamma:float last_epoch:int" LOCKSTEP_SCHEDULER},
    {"PolynomialLR", "total_iters:int power:float last_epoch:int" LOCKSTEP_SCHEDULER},
    {"CosineAnnealingLR", "T_max:int eta_min:float last_epoch:int" LOCKSTEP_SCHEDULER},
    {"CosineAnnealingWarmRestarts",
     "T_0:int T_mult:int eta_min:float last_epoch:int" LOCKSTEP_SCHEDULER},
    {"OneCycleLR",
     "max_lr:float total_steps:int epochs:int steps_per_epoch:int pct_start:float "
     "anneal_strategy:text cycle_momentum:bool base_momentum:float max_momentum:float "
     "div_factor:float final_div_factor:float three_phase:bool last_epoch:int" LOCKSTEP_SCHEDULER},
    {"CyclicLR",
     "base_lr:float max_lr:float step_size_up:float step_size_down:float mode:text gamma:float "
     "scale_fn scale_mode:text cycle_momentum:bool base_momentum:float max_momentum:float "
     "last_epoch:int" LOCKSTEP_SCHEDULER},
    {"LambdaLR", "lr_lambda:expression last_epoch:int" LOCKSTEP_SCHEDULER},
    {"MultiplicativeLR", "lr_lambda:expression last_epoch:int" LOCKSTEP_SCHEDULER},
    {"SequentialLR", "schedulers:schedulers milestones:list last_epoch:int" LOCKSTEP_SCHEDULER},
    {"ChainedScheduler", "schedulers:schedulers" LOCKSTEP_SCHEDULER},
    {"get_constant_schedule_with_warmup", "num_warmup_steps:int last_epoch:int" LOCKSTEP_SCHEDULER},
    {"get_linear_schedule_with_warmup",
     "num_warmup_steps:int num_training_steps:int last_epoch:int" LOCKSTEP_SCHEDULER},
    {"get_cosine_schedule_with_warmup",
     "num_warmup_steps:int num_training_steps:int num_cycles:float "
     "last_epoch:int" LOCKSTEP_SCHEDULER},
    {"get_inverse_sqrt_schedule",
     "num_warmup_steps:int timescale:int last_epoch:int" LOCKSTEP_SCHEDULER},
    {"WarmupLR",
     "warmup_min_lr:float warmup_max_lr:float warmup_num_steps:int warmup_type:text "
     "last_batch_iteration:int" LOCKSTEP_SCHEDULER},
    {"WarmupDecayLR",
     "total_num_steps:int warmup_min_lr:float warmup_max_lr:float warmup_num_steps:int "
     "warmup_type:text last_batch_iteration:int" LOCKSTEP_SCHEDULER},
    {"WarmupCosineLR",
     "total_num_steps:int warmup_min_ratio:float warmup_num_steps:int cos_min_ratio:float "
     "warmup_type:text last_batch_iteration:int" LOCKSTEP_SCHEDULER},
    {"OneCycle",
     "cycle_min_lr:float cycle_max_lr:float decay_lr_rate:float cycle_first_step_size:int "
     "cycle_second_step_size:int cycle_first_stair_count:int cycle_second_stair_count:int "
     "decay_step_size:int cycle_momentum:bool cycle_min_mom:float cycle_max_mom:float "
     "decay_mom_rate:float last_batch_iteration:int" LOCKSTEP_SCHEDULER},
    {"LRRangeTest",
     "lr_range_test_min_lr:float lr_range_test_step_size:int lr_range_test_step_rate:float "
     "lr_range_test_staircase:bool last_batch_iteration:int" LOCKSTEP_SCHEDULER},
    {"ReduceLROnPlateau",
     "mode:text factor:float patience:int threshold:float threshold_mode:text cooldown:int "
     "min_lr:float eps:float" LOCKSTEP_SCHEDULER},
});

constexpr auto torch_losses = std::to_array<ClassRow>({
    {"CrossEntropyLoss", "weight ignore_index:int reduction:text label_smoothing:float"},
    {"MSELoss", "reduction:text"},
    {"L1Loss", "reduction:text"},
    {"SmoothL1Loss", "reduction:text beta:float"},
    {"HuberLoss", "reduction:text delta:float"},
    {"BCELoss", "weight reduction:text"},
    {"BCEWithLogitsLoss", "weight reduction:text pos_weight"},
    {"NLLLoss", "weight ignore_index:int reduction:text"},
    {"KLDivLoss", "reduction:text log_target:bool"},
    {"NTXentLoss", "temperature:float memory_bank_size:int gather_distributed:bool"},
    {"InfoNCE", "temperature:float"},
    {"ClipLoss", "temperature:float gather_distributed:bool"},
    {"SigLipLoss", "temperature:float bias:float"},
    {"SupConLoss", "temperature:float base_temperature:float"},
});

constexpr auto torch_layers = std::to_array<ClassRow>({
    {"Linear", "in_features:int out_features:int bias:bool dtype:text tied_to:text"},
    {"Bias", "features:int"},
    {"ReLU", "inplace:bool"},
    {"ReLU6", "inplace:bool"},
    {"LeakyReLU", "negative_slope:float inplace:bool"},
    {"GELU", "approximate:text"},
    {"SiLU", "inplace:bool"},
    {"Hardswish", "inplace:bool"},
    {"Sigmoid", ""},
    {"Hardsigmoid", "inplace:bool"},
    {"Tanh", ""},
    {"Softmax", "dim:int"},
    {"Identity", ""},
    {"Dropout", "p:float inplace:bool"},
    {"StochasticDepth", "p:float mode:text"},
    {"LayerScale", "shape:list init_values:float"},
    {"Flatten", "start_dim:int end_dim:int"},
    {"Embedding",
     "num_embeddings:int embedding_dim:int padding_idx:int max_norm:float norm_type:float "
     "scale_grad_by_freq:bool sparse:bool"},
    {"PositionalEmbedding", "num_embeddings:int embedding_dim:int"},
    {"BatchNorm1d",
     "num_features:int eps:float momentum:float affine:bool track_running_stats:bool"},
    {"BatchNorm2d",
     "num_features:int eps:float momentum:float affine:bool track_running_stats:bool"},
    {"BatchNorm3d",
     "num_features:int eps:float momentum:float affine:bool track_running_stats:bool"},
    {"SyncBatchNorm",
     "num_features:int eps:float momentum:float affine:bool track_running_stats:bool"},
    {"LayerNorm", "normalized_shape eps:float elementwise_affine:bool bias:bool"},
    {"RMSNorm", "normalized_shape eps:float elementwise_affine:bool"},
    {"GroupNorm", "num_groups:int num_channels:int eps:float affine:bool"},
    {"Conv1d",
     "in_channels:int out_channels:int kernel_size stride padding dilation groups:int bias:bool "
     "padding_mode:text"},
    {"Conv2d",
     "in_channels:int out_channels:int kernel_size stride padding dilation groups:int bias:bool "
     "padding_mode:text"},
    {"ConvTranspose2d",
     "in_channels:int out_channels:int kernel_size stride padding output_padding groups:int "
     "bias:bool dilation padding_mode:text"},
    {"MaxPool2d", "kernel_size stride padding dilation return_indices:bool ceil_mode:bool"},
    {"AvgPool2d",
     "kernel_size stride padding ceil_mode:bool count_include_pad:bool divisor_override:int"},
    {"AdaptiveAvgPool2d", "output_size"},
    {"MultiheadAttention",
     "embed_dim:int num_heads:int dropout:float bias:bool add_bias_kv:bool add_zero_attn:bool "
     "kdim:int vdim:int batch_first:bool"},
    {"CausalSelfAttention", "embed_dim:int num_heads:int dropout:float bias:bool"},
    {"GroupedQueryAttention",
     "embed_dim:int num_heads:int num_kv_heads:int head_dim:int rope_theta:float "
     "sliding_window:int bias:bool qkv_bias:bool qk_norm_eps:float"},
    {"SwiGLU", "embed_dim:int hidden_dim:int bias:bool activation:text"},
    {"MixtureOfExperts",
     "embed_dim:int hidden_dim:int num_experts:int top_k:int expert:text norm_topk_prob:bool "
     "capacity_factor:float aux_loss_coef:float grouped:bool imbalance:float"},
    {"Upsample", "size scale_factor mode:text"},
    {"PatchSequence", "channels:int class_token:bool"},
    {"FirstPosition", ""},
    {"Permute", "dims:list"},
    {"PatchMerging", ""},
    {"Positions", "first:int count:int"},
    {"Scale", "factor:float"},
    {"RelativePositionBias", "num_heads:int num_buckets:int max_distance:int bidirectional:bool"},
    {"BiasedAttention",
     "embed_dim:int num_heads:int head_dim:int causal:bool scaled:bool bias:bool aside:text"},
    {"CrossAttention", "embed_dim:int num_heads:int head_dim:int scaled:bool bias:bool aside:text"},
    {"WindowAttention",
     "dim:int window_size shift_size num_heads:int qkv_bias:bool proj_bias:bool "
     "attention_dropout:float dropout:float"},
    {"TransformerEncoderLayer",
     "d_model:int nhead:int dim_feedforward:int dropout:float activation:text "
     "layer_norm_eps:float batch_first:bool norm_first:bool bias:bool"},
    {"LSTM",
     "input_size:int hidden_size:int num_layers:int bias:bool batch_first:bool dropout:float "
     "bidirectional:bool proj_size:int"},
    {"Buffer", "shape:list dtype:text"},
});

constexpr auto torch_launchers = std::to_array<ClassRow>({
    {"lightning", ""},
    {"notebook", ""},
    {"torchrun",
     "nnodes nproc_per_node:int max_restarts:int standalone:bool rdzv_backend:text "
     "rdzv_endpoint:text"},
    {"horovodrun", "np:int hosts hostfile:text"},
    {"baguarun",
     "nproc_per_node:int host_list hosts ssh_port:int master_port:int bagua_service_port:int "
     "enable_bagua_net:bool"},
    {"bagua.distributed.launch",
     "nnodes:int node_rank:int nproc_per_node:int master_addr:text master_port:int "
     "bagua_service_port:int default_bucket_size:int autotune_level:int enable_bagua_net:bool"},
    {"srun", "nodes:int ntasks_per_node:int"},
    {"mpirun", "np:int hosts hostfile:text"},
});

#undef LOCKSTEP_OPTIMIZER
#undef LOCKSTEP_SCHEDULER

}  // namespace

std::span<const ClassRow> optimizer_classes() { return torch_optimizers; }
std::span<const ClassRow> scheduler_classes() { return torch_schedulers; }
std::span<const ClassRow> loss_classes() { return torch_losses; }
std::span<const ClassRow> layer_classes() { return torch_layers; }
std::span<const ClassRow> launcher_classes() { return torch_launchers; }

}  // namespace lockstep
