// What MegatronStrategy cannot do with its sizes: the place, and a remedy with which it can.
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace megatron_remedies_test {

namespace {

struct Setting {
  std::string strategy;
  int devices = 4;
  int positions = 8;
  int batch_size = 8;
  int vocabulary = 32;
  int blocks = 4;
  std::string block =
      "{Residual: [{LayerNorm: 16}, {CausalSelfAttention: {embed_dim: 16, "
      "num_heads: 4}}]}";
};

/// The first problem that stops it, with an empty message where there is none.
Problem stop_of(const Setting& set) {
  const auto text = [](int number) { return std::to_string(number); };
  const std::string scenario =
      "version: 1\nmodel: {input: [" + text(set.positions) +
      "], input_dtype: int64, loss: CrossEntropyLoss, layers: [{Embedding: [" +
      text(set.vocabulary) + ", 16], name: wte}, {repeat: " + text(set.blocks) + ", layers: [" +
      set.block + "]}, {Linear: [16, " + text(set.vocabulary) +
      "], name: head}]}\ndata: {train: {samples: 96, batch_size: " + text(set.batch_size) +
      "}}\ntrainer: {accelerator: gpu, max_steps: 1, devices: " + text(set.devices) +
      ",\n  strategy: {MegatronStrategy: {\n    " + set.strategy + "}}}\n";
  for (const Problem& problem : prepare(scenario_of(scenario), standard_strategies()).problems) {
    if (problem.stops()) {
      CHECK(problem.place.line == 6);
      return problem;
    }
  }
  return {Problem::Kind::note, {}, ""};
}

bool runs(const Setting& set) {
  const Problem stop = stop_of(set);
  UNSCOPED_INFO(stop.message);
  return stop.message.empty();
}

}  // namespace

TEST_CASE("a sequence that tensor ranks do not divide is about its length, not the vocabulary") {
  Setting set{.strategy =
                  "sequence_parallel: true, tensor_model_parallel_size: 2, "
                  "micro_batch_size: 2, global_batch_size: 16",
              .positions = 9};
  const Problem stop = stop_of(set);
  CHECK(stop.kind == Problem::Kind::refused);
  CHECK(stop.message.ends_with("divisible by tensor parallel size (9 positions, 2 ranks)"));
  CHECK(stop.remedy ==
        "choose a sequence length that 2 divides, such as 8 or 10, or leave sequence_parallel out");
  set.positions = 10;
  CHECK(runs(set));
  set.positions = 9;
  set.strategy = "tensor_model_parallel_size: 2, micro_batch_size: 2, global_batch_size: 16";
  CHECK(runs(set));
}

TEST_CASE("a sequence that tensor and context ranks divide is offered where there are both") {
  Setting set{.strategy =
                  "context_parallel_size: 2, tensor_model_parallel_size: 4, "
                  "sequence_parallel: true, micro_batch_size: 2, global_batch_size: 8",
              .devices = 8,
              .positions = 12};
  CHECK(stop_of(set).remedy == "choose a sequence length that 8 divides, such as 8 or 16");
  set.positions = 16;
  CHECK(runs(set));
}

TEST_CASE("a vocabulary that does not divide is padded in both layers") {
  Setting set{.strategy =
                  "tensor_model_parallel_size: 2, micro_batch_size: 2, "
                  "global_batch_size: 16",
              .vocabulary = 33};
  const Problem stop = stop_of(set);
  CHECK(stop.message == "wte: its 33 num_embeddings cannot be divided among 2 ranks");
  CHECK(stop.remedy.starts_with("set the vocabulary to 256, in the embedding and in the last"));
  set.vocabulary = 256;
  CHECK(runs(set));
}

TEST_CASE("heads and features that do not divide are said with the sizes that would") {
  Setting set{.strategy =
                  "tensor_model_parallel_size: 8, micro_batch_size: 2, "
                  "global_batch_size: 8",
              .devices = 8};
  CHECK(stop_of(set).remedy == "choose a tensor_model_parallel_size that divides 4: 1, 2 or 4");
  set.strategy = "tensor_model_parallel_size: 2, micro_batch_size: 2, global_batch_size: 16";
  set.block = "{Residual: [{LayerNorm: 16}, {Linear: [16, 63]}, GELU, {Linear: [63, 16]}]}";
  set.devices = 4;
  CHECK(stop_of(set).remedy == "choose a tensor_model_parallel_size that divides 63: 1 or 3");
}

TEST_CASE("a global batch that does not divide is said with the nearest that would") {
  Setting set{.strategy =
                  "tensor_model_parallel_size: 2, micro_batch_size: 3, "
                  "global_batch_size: 14",
              .batch_size = 7};
  CHECK(stop_of(set).remedy ==
        "write global_batch_size: 12 or 18 and, divided by the number of replicas, "
        "data.train.batch_size: 6 or 9");
  set.strategy = "tensor_model_parallel_size: 2, micro_batch_size: 3, global_batch_size: 12";
  set.batch_size = 6;
  CHECK(runs(set));
}

TEST_CASE("sizes whose product does not divide the ranks are said with their numbers") {
  const Problem stop = stop_of({.strategy = "tensor_model_parallel_size: 2, "
                                            "pipeline_model_parallel_size: 2, micro_batch_size: 2, "
                                            "global_batch_size: 8",
                                .devices = 6});
  CHECK(stop.remedy ==
        "the product of tensor_model_parallel_size (2), pipeline_model_parallel_size (2) and "
        "context_parallel_size (1) has to divide the number of ranks: choose sizes whose product "
        "is 1, 2, 3 or 6, or use 4 or 8 ranks");
}

TEST_CASE("layers that stages do not divide are said with what would do") {
  const std::string batches = ", micro_batch_size: 2, global_batch_size: 8";
  const auto remedy = [&](const std::string& sizes, int devices) {
    return stop_of({.strategy = sizes + batches, .devices = devices}).remedy;
  };
  CHECK(remedy("pipeline_model_parallel_size: 3", 3) ==
        "choose a number of layers that 3 divides, such as 3 or 6, or write "
        "pipeline_model_parallel_size: 1");
  CHECK(remedy("pipeline_model_parallel_size: 8", 8) ==
        "write pipeline_model_parallel_size: 1, 2 or 4, or choose a number of layers that 8 "
        "divides, such as 8");
  CHECK(remedy("pipeline_model_parallel_size: 4, virtual_pipeline_model_parallel_size: 2", 4) ==
        "leave virtual_pipeline_model_parallel_size out: each rank has one layer");
  CHECK(remedy("pipeline_model_parallel_size: 2, virtual_pipeline_model_parallel_size: 3", 2) ==
        "write virtual_pipeline_model_parallel_size: 2, which divides the 2 layers of a rank, or "
        "leave it out");
  CHECK(
      runs({.strategy = "pipeline_model_parallel_size: 2, virtual_pipeline_model_parallel_size: 2" +
                        batches,
            .devices = 2}));
}

TEST_CASE("the interleaved schedule says which numbers of micro-batches it takes") {
  Setting set{.strategy =
                  "pipeline_model_parallel_size: 2, virtual_pipeline_model_parallel_size: "
                  "2, micro_batch_size: 2, global_batch_size: 6",
              .devices = 2,
              .batch_size = 6};
  CHECK(stop_of(set).remedy ==
        "write global_batch_size: 4 or 8 and, divided by the number of replicas, "
        "data.train.batch_size: 4 or 8, or leave virtual_pipeline_model_parallel_size out");
  set.strategy =
      "pipeline_model_parallel_size: 2, virtual_pipeline_model_parallel_size: 2, "
      "micro_batch_size: 2, global_batch_size: 4";
  set.batch_size = 4;
  CHECK(runs(set));
  set.strategy =
      "virtual_pipeline_model_parallel_size: 2, micro_batch_size: 2, "
      "global_batch_size: 4";
  CHECK(stop_of(set).remedy == "leave it out, or set pipeline_model_parallel_size to 2 or more");
}

TEST_CASE("experts and their ranks that do not divide are said with what would do") {
  const std::string mixture =
      "{Residual: [{LayerNorm: 16}, {MixtureOfExperts: {embed_dim: 16, hidden_dim: 24, "
      "num_experts: 6, top_k: 2}}]}";
  Setting set{.strategy =
                  "expert_model_parallel_size: 4, micro_batch_size: 2, "
                  "global_batch_size: 32",
              .block = mixture};
  CHECK(
      stop_of(set).remedy ==
      "write expert_model_parallel_size: 1 or 2, which divides num_experts (6) and the ranks that "
      "can divide them (4)");
  set.strategy = "expert_model_parallel_size: 3, micro_batch_size: 2, global_batch_size: 32";
  CHECK(stop_of(set).remedy ==
        "write expert_model_parallel_size: 1, 2 or 4; its product with expert_tensor_parallel_size "
        "(1) and pipeline_model_parallel_size (1) has to divide the 4 ranks");
  set.strategy = "expert_model_parallel_size: 2, micro_batch_size: 2, global_batch_size: 32";
  CHECK(runs(set));
}

TEST_CASE("an argument of NeMo's class that is not modelled is refused by its name") {
  const Problem stop = stop_of({.strategy = "use_tp_pp_dp_mapping: true, micro_batch_size: 2, "
                                            "global_batch_size: 8"});
  CHECK(stop.kind == Problem::Kind::unsupported);
  CHECK(stop.message.find("use_tp_pp_dp_mapping") != std::string::npos);
}

}  // namespace megatron_remedies_test
