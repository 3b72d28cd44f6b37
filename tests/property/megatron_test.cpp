// MegatronStrategy in drawn meshes: what is trained is what one device trains, on threads as in the
// simulator.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "tests/property/agreement.hpp"
#include "tests/property/clean_rehearsal.hpp"
#include "tests/property/held.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace megatron_test {

namespace {

constexpr const char* megatron_test = "MegatronStrategy trains what one device trains";

/// A training as a value.
struct MegatronCase {
  int32_t tensor = 1;
  int32_t pipeline = 1;
  int32_t chunks = 1;
  int32_t replicas = 1;
  int32_t context = 1;  ///< ranks that divide the positions
  std::string context_type = "p2p";
  bool sequence = false;
  bool is_llama = false;
  bool tied = false;
  bool divided = false;
  bool overlapped = false;
  bool averages = false;
  bool checkpointed = false;
  bool clips = false;
  int64_t micro_batches = 1;  ///< times the pipeline's ranks, where stages are interleaved
  std::string optimizer;

  int32_t ranks() const { return tensor * pipeline * replicas * context; }
  int32_t positions() const { return context == 4 ? 8 : 4; }
  int32_t blocks() const { return pipeline * chunks; }
};

std::string layers_of(const MegatronCase& training) {
  const std::string norm = training.is_llama ? "{RMSNorm: [8]}" : "{LayerNorm: [8]}";
  const std::string attention =
      training.is_llama
          ? "{GroupedQueryAttention: {embed_dim: 8, num_heads: 4, num_kv_heads: 2, bias: false}}"
          : "{CausalSelfAttention: {embed_dim: 8, num_heads: 2}}";
  const std::string feed_forward = training.is_llama
                                       ? "          - {SwiGLU: [8, 16]}\n"
                                       : "          - {Linear: [8, 16]}\n          - {GELU: {}}\n"
                                         "          - {Linear: [16, 8]}\n";

  return fmt::format(
      "    - {{Embedding: [16, 8], name: embedding}}\n{}    - repeat: {}\n      layers:\n"
      "      - Residual:\n          - {}\n          - {}\n"
      "      - Residual:\n          - {}\n{}"
      "    - {{{}: [8], name: last_norm}}\n"
      "    - {{Linear: {{in_features: 8, out_features: 16, bias: false{}}}, name: head}}\n",
      training.is_llama ? ""
                        : fmt::format("    - {{PositionalEmbedding: [{}, 8], name: positions}}\n",
                                      training.positions()),
      training.blocks(), norm, attention, norm, feed_forward,
      training.is_llama ? "RMSNorm" : "LayerNorm", training.tied ? ", tied_to: embedding" : "");
}

std::string text_of(const MegatronCase& training) {
  const int64_t micro = 2;
  const int64_t batch = micro * training.micro_batches;
  std::string ddp;
  const auto option = [&](const char* name, bool is_set) {
    ddp += is_set ? fmt::format("{}{}: true", ddp.empty() ? "" : ", ", name) : "";
  };
  option("use_distributed_optimizer", training.divided);
  option("overlap_grad_reduce", training.overlapped);
  option("overlap_param_gather", training.overlapped && training.divided);
  option("average_in_collective", training.averages);
  ddp += training.overlapped ? ", bucket_size: 200" : "";
  return fmt::format(
      "version: 1\ncluster: {{preset: dgx-a100, nodes: 1}}\n"
      "model:\n  input: [{}]\n  input_dtype: int64\n  layers:\n{}  loss: CrossEntropyLoss\n{}"
      "optimizer: {}\n"
      "data: {{train: {{samples: {}, batch_size: {}}}}}\n"
      "trainer:\n  accelerator: gpu\n  devices: {}\n  max_epochs: 1\n"
      "  num_sanity_val_steps: 0\n  enable_checkpointing: false\n{}"
      "  strategy:\n    MegatronStrategy:\n      tensor_model_parallel_size: {}\n"
      "      pipeline_model_parallel_size: {}\n{}      sequence_parallel: {}\n"
      "      context_parallel_size: {}\n      cp_comm_type: {}\n"
      "      micro_batch_size: {}\n      global_batch_size: {}\n{}"
      "verify: {{numerics: true}}\n",
      training.positions(), layers_of(training),
      training.checkpointed ? "  activation_checkpointing: full\n" : "", training.optimizer,
      batch * training.replicas * 2, batch, training.ranks(),
      training.clips ? "  gradient_clip_val: 0.05\n" : "", training.tensor, training.pipeline,
      training.chunks > 1
          ? fmt::format("      virtual_pipeline_model_parallel_size: {}\n", training.chunks)
          : "",
      training.sequence, training.context, training.context_type, micro, batch * training.replicas,
      ddp.empty() ? ""
                  : fmt::format("      ddp: {{DistributedDataParallelConfig: {{{}}}}}\n", ddp));
}

std::ostream& operator<<(std::ostream& out, const MegatronCase& training) {
  return out << text_of(training);
}

rc::Gen<bool> maybe() { return rc::gen::element(true, false); }

rc::Gen<MegatronCase> megatron_cases() {
  return rc::gen::exec([] {
    MegatronCase training;
    training.tensor = *rc::gen::element(1, 2);
    training.pipeline = *rc::gen::element(1, 2, 3);
    training.chunks = training.pipeline > 1 ? *rc::gen::element(1, 2) : 1;
    training.replicas = training.tensor * training.pipeline > 4 ? 1 : *rc::gen::element(1, 2);
    training.sequence = training.tensor > 1 && *maybe();
    training.is_llama = *maybe();
    training.context = training.ranks() > 4   ? 1
                       : training.ranks() > 2 ? *rc::gen::element(1, 2)
                                              : *rc::gen::element(1, 2, 4);
    // Both models have two heads of keys and values.
    training.context_type = 2 / training.tensor % training.context == 0
                                ? *rc::gen::element<std::string>("p2p", "a2a", "all_gather")
                                : *rc::gen::element<std::string>("p2p", "all_gather");
    training.tied = *maybe();
    training.divided = *maybe();
    training.overlapped = *maybe();
    training.averages = *maybe();
    training.checkpointed = *maybe();
    training.clips = *maybe();
    training.micro_batches =
        *rc::gen::element<int64_t>(1, 2, 3) * (training.chunks > 1 ? training.pipeline : 1);
    training.optimizer =
        *rc::gen::element<std::string>("{SGD: {lr: 0.1, momentum: 0.9}}", "{AdamW: {lr: 0.01}}");
    return training;
  });
}

}  // namespace

TEST_CASE("MegatronStrategy trains what one device trains") {
  Distribution distribution;
  const bool held = holds(megatron_test, 60, [&] {
    const MegatronCase training = *megatron_cases();
    distribution.draw();
    const std::string text = text_of(training);
    RC_LOG() << text;
    // Findings are those of every training: LS306 compares with one device.
    const cli::Rehearsal simulated = clean_rehearsal(text, cli::World::simulated);
    RC_ASSERT(simulated.run.preparation.options.numerics);
    if (*rc::gen::element(true, false, false)) {
      clean_rehearsal(text, cli::World::threads);
      distribution.count("on threads");
    }
    distribution.count_case();
    if (training.context > 1) {
      distribution.count("positions by " + training.context_type);
    }
    distribution.count(training.sequence ? "in sequence" : "not in sequence");
    distribution.count(training.divided ? "divided optimizer" : "whole optimizer");
    distribution.count(training.chunks > 1 ? "interleaved" : "not interleaved");
  });
  distribution.print(megatron_test);
  REQUIRE(held);
}

}  // namespace megatron_test
