#include "tests/property/wide_megatron.hpp"

#include <fmt/format.h>

#include "tests/property/draws.hpp"
#include "tests/property/wide_faults.hpp"

namespace lockstep::test {

// Tensor ranks of a stage on one node, of which most do the same.
WideCase wide_megatron(int micro_batches) {
  constexpr int devices = 8;
  const int nodes = *rc::gen::element(3, 4, 6);
  const int tensor_ranks = *rc::gen::element(2, 4, 4, 8, 8);
  const auto if_divides = [&](int wanted, int others) {
    return nodes * devices % (wanted * others) == 0 ? wanted : 1;
  };
  const int stages = if_divides(*rc::gen::element(1, 2, nodes % 3 == 0 ? 3 : 2), tensor_ranks);
  const int context_ranks = if_divides(*rc::gen::element(1, 1, 1, 2), tensor_ranks * stages);
  const int replicas = nodes * devices / (tensor_ranks * stages * context_ranks);
  const int of_replica = micro_batches * *rc::gen::inRange(1, 3);
  const int steps = *rc::gen::inRange(1, 4);
  return {fmt::format(
      "version: 1\n"
      "cluster: {{preset: {}, nodes: {}}}\n"
      "optimizer: {{{}}}\n"
      "model:\n"
      "  input: [8]\n"
      "  input_dtype: int64\n"
      "  layers:\n"
      "    - {{Embedding: [32, 64], name: wte}}\n"
      "    - repeat: {}\n"
      "      layers:\n"
      "        - Residual: [{{LayerNorm: [64]}}, {{CausalSelfAttention: {{embed_dim: 64, "
      "num_heads: "
      "8}}}}]\n"
      "        - Residual: [{{LayerNorm: [64]}}, {{Linear: [64, 128]}}, GELU, {{Linear: [128, "
      "64]}}]\n"
      "    - {{LayerNorm: [64], name: ln_f}}\n"
      "    - {{Linear: {{in_features: 64, out_features: 32, bias: false{}}}, name: lm_head}}\n"
      "  loss: CrossEntropyLoss\n"
      "data: {{train: {{samples: {}, batch_size: {}}}}}\n"
      "trainer:\n"
      "  accelerator: gpu\n"
      "  devices: {}\n"
      "  num_nodes: {}\n"
      "  max_epochs: {}\n"
      "  gradient_clip_val: {}\n"
      "  strategy:\n"
      "    MegatronStrategy:\n"
      "      tensor_model_parallel_size: {}\n"
      "      pipeline_model_parallel_size: {}\n"
      "      context_parallel_size: {}\n"
      "      sequence_parallel: {}\n"
      "      micro_batch_size: 1\n"
      "      global_batch_size: {}\n"
      "      ddp: {{use_distributed_optimizer: {}, overlap_grad_reduce: {}, bucket_size: 3000}}\n"
      "{}",
      one_of({"dgx-a100", "dgx-h100", "dgx-h100"}), nodes,
      one_of({"Adam: {lr: 0.01}", "SGD: {lr: 0.1}"}), 2 * stages, one_of({"", ", tied_to: wte"}),
      of_replica * replicas * steps, of_replica, devices, nodes, *rc::gen::inRange(1, 3),
      one_of({"0.0", "0.5"}), tensor_ranks, stages, context_ranks, one_of({"true", "false"}),
      of_replica * replicas, one_of({"true", "false"}), one_of({"true", "false"}),
      drawn_faults(nodes * devices, nodes, true))};
}

}  // namespace lockstep::test
