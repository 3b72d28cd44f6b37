#include <catch2/catch.hpp>

#include "rehearsal/findings/invariants.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

// Query, key and value are one Linear of 3 x 16 rows, of which each of two ranks has the rows of
// its two heads: three stretches of 8, that the optimizer updates as one tensor of 24.
TEST_CASE("each stretch of a parameter knows its own elements of what was updated at once") {
  const std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "model: {input: [4], input_dtype: int64, loss: CrossEntropyLoss, layers: [{Embedding: [8, "
      "16]}, {Residual: [{CausalSelfAttention: {embed_dim: 16, num_heads: 4}, name: attention}]}, "
      "{Linear: {in_features: 16, out_features: 8, bias: false}}]}\n"
      "optimizer: {AdamW: {lr: 0.01}}\n"
      "data: {train: {samples: 4, batch_size: 2}}\n"
      "trainer: {accelerator: gpu, devices: 2, max_steps: 2, strategy: {MegatronStrategy: "
      "{tensor_model_parallel_size: 2, micro_batch_size: 2, global_batch_size: 2}}}\n"
      "verify: {numerics: true}\n";
  const std::vector<cli::Job> jobs = rehearsed(text);
  REQUIRE(jobs.front().result.ran());
  std::vector<int64_t> begins;
  for (const NamedValues& part : parameters_of(jobs.front().result.run)) {
    if (part.rank == 1 && part.name.ends_with("c_attn.bias")) {
      REQUIRE(part.sensitivity != nullptr);
      CHECK(part.values.size() == 8);
      CHECK(part.sensitivity->by_error.size() == 24);
      CHECK(part.first_element == 16 * static_cast<int64_t>(begins.size()) + 8);
      begins.push_back(part.sensitivity_begin);
    }
  }
  CHECK(begins == std::vector<int64_t>{0, 8, 16});
}
