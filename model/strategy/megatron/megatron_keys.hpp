#pragma once

namespace lockstep::megatron_keys {

// Arguments that errors name, too.
inline constexpr const char* tensor_size = "tensor_model_parallel_size";
inline constexpr const char* pipeline_size = "pipeline_model_parallel_size";
inline constexpr const char* virtual_size = "virtual_pipeline_model_parallel_size";
inline constexpr const char* micro_batch_key = "micro_batch_size";
inline constexpr const char* global_batch_key = "global_batch_size";
inline constexpr const char* by_positions = "sequence_parallel";
inline constexpr const char* context_size = "context_parallel_size";
inline constexpr const char* context_type = "cp_comm_type";
inline constexpr const char* expert_size = "expert_model_parallel_size";
inline constexpr const char* expert_tensor_size = "expert_tensor_parallel_size";

}  // namespace lockstep::megatron_keys
