#include "model/trainer/framework/compared_strategies.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/trainer/framework/lightning_versions.hpp"

namespace lockstep {

namespace {

/// Each by its name alone.
void add(std::initializer_list<const char*> names, std::vector<ComparedStrategy>& compared) {
  for (const char* name : names) {
    compared.push_back({name, name});
  }
}

void add_xla(const ComparedTraining& training, std::vector<ComparedStrategy>& compared) {
  if (training.device == DeviceType::tpu && training.lightning >= v2_0) {
    add({"single_xla", "xla"}, compared);
  } else if (training.device == DeviceType::tpu) {
    add({"single_tpu", "TPUSpawnStrategy"}, compared);
  }
}

void add_bagua(std::vector<ComparedStrategy>& compared) {
  add({"bagua"}, compared);
  for (const char* algorithm :
       {"bytegrad", "decentralized", "low_precision_decentralized", "async", "qadam"}) {
    compared.push_back({fmt::format("bagua, {}", algorithm), "BaguaStrategy",
                        fmt::format("algorithm: {}", algorithm)});
  }
  // That algorithm alone takes this optimizer, whose warm-up does what `bagua` does.
  compared.back().settings = {"optimizer={QAdamOptimizer: {warmup_steps: 1}}"};
  compared.back().note = "behind a warm-up of one step, which by default has 100: warmup_steps: 1";
}

void add_fsdp(const ComparedTraining& training, std::vector<ComparedStrategy>& compared) {
  add({"fsdp_native", "fsdp", "fsdp_cpu_offload"}, compared);
  const std::string blocks = "auto_wrap_policy: blocks";
  compared.push_back({"fsdp by blocks", "FSDPStrategy", blocks});
  compared.push_back(
      {"fsdp by blocks, hybrid", "FSDPStrategy", blocks + ", sharding_strategy: HYBRID_SHARD"});
  compared.push_back({"fsdp by blocks, offload", "FSDPStrategy", blocks + ", cpu_offload: true"});
  const std::string types = training.narrow.empty()
                                ? ""
                                : fmt::format(", mp_policy: {{param_dtype: {}}}", training.narrow);
  compared.push_back({"fsdp2 by blocks", "ModelParallelStrategy",
                      fmt::format("data_parallel_size: {}, tensor_parallel_size: 1, fully_shard: "
                                  "{{modules: blocks{}}}",
                                  training.nodes * training.devices, types)});
}

// All micro-batches of a batch have the same size, and there are about as many as stages; GPipe
// also takes fewer.
ComparedStrategy pipeline(const ComparedTraining& training) {
  ComparedStrategy compared{"PipelineStrategy", "PipelineStrategy"};
  const int64_t stages = training.nodes * training.devices;
  int64_t parts = std::min(training.batch_size, stages);
  while (parts > 0 && training.batch_size % parts != 0) {
    --parts;
  }
  if (parts > 0) {
    compared.arguments =
        fmt::format("n_microbatches: {}{}", parts, parts < stages ? ", schedule: GPipe" : "");
  }
  return compared;
}

// Within nodes, whose links are fast; each replica of the model is a node.
ComparedStrategy tensor_parallel(const ComparedTraining& training) {
  return {"tensor parallel in nodes", "ModelParallelStrategy",
          fmt::format("data_parallel_size: {}, tensor_parallel_size: {}, parallelize_plan: auto",
                      training.nodes, training.devices)};
}

}  // namespace

std::vector<ComparedStrategy> strategies_to_compare(const ComparedTraining& training) {
  std::vector<ComparedStrategy> compared;
  add_xla(training, compared);
  add({"single_device", "dp", "ddp2", "ddp", "ddp_spawn"}, compared);
  compared.push_back({"ddp, fp16 gradients", "DDPStrategy", "ddp_comm_hook: fp16_compress_hook"});
  // Behind their first steps, which are those of ddp.
  compared.push_back({"ddp, PowerSGD", "DDPStrategy",
                      "ddp_comm_hook: powerSGD_hook, ddp_comm_state: {matrix_approximation_rank: "
                      "1, start_powerSGD_iter: 2}"});
  compared.push_back({"ddp, post-local SGD", "DDPStrategy",
                      "ddp_comm_hook: post_localSGD_hook, ddp_comm_state: {start_localSGD_iter: "
                      "2}, model_averaging_period: 4"});
  add({"horovod"}, compared);
  compared.push_back({"horovod, Adasum", "HorovodStrategy", "op: adasum"});
  add_bagua(compared);
  add({"ddp_sharded", "ddp_fully_sharded"}, compared);
  add_fsdp(training, compared);
  add({"deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_2_offload", "deepspeed_stage_3",
       "deepspeed_stage_3_offload"},
      compared);
  compared.push_back(tensor_parallel(training));
  compared.push_back(pipeline(training));
  add({"ParameterServerStrategy"}, compared);
  compared.push_back({"asynchronous server", "ParameterServerStrategy", "mode: async"});
  return compared;
}

}  // namespace lockstep
