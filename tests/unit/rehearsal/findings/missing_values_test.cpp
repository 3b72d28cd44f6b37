#include "rehearsal/findings/missing_values.hpp"

#include <catch2/catch.hpp>

#include "cli/render/render.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace missing_values_test {

namespace {

/// A training of two ranks, on GPUs.
std::string training(const std::string& layers, const std::string& more = "",
                     const std::string& trainer = "") {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n" + more +
         "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, "
         "num_sanity_val_steps: 0, limit_val_batches: 0, enable_checkpointing: false" +
         trainer + "}\ndata: {train: {samples: 16, batch_size: 4}}\nmodel: " + layers + "\n";
}

std::string missing(const std::string& text) {
  return cli::missing_values(rehearsed(text).front().result.run);
}

std::vector<std::string> codes(const std::string& text) {
  const std::vector<cli::Job> jobs = rehearsed(text);
  std::vector<std::string> found;
  for (const Finding& finding : jobs.front().result.findings) {
    found.push_back(finding.code);
  }
  return found;
}

const std::string transformer =
    "{input: [3, 4], loss: MSELoss, layers: [{PositionalEmbedding: [3, 4]}, {LayerNorm: 4}, "
    "{CausalSelfAttention: [4, 2]}, {Residual: {layers: [{LayerNorm: 4}, {Linear: [4, 4]}]}}, "
    "{Residual: {layers: [{MultiheadAttention: [4, 2]}], shortcut: [{LayerNorm: 4}]}}, "
    "{GELU: {approximate: tanh}}, GELU, {Dropout: 0.0}]}";
const std::string image =
    "{input: [2, 8, 8], loss: MSELoss, layers: [{Conv2d: [2, 3, 3]}, {MaxPool2d: 2}, "
    "{AvgPool2d: 2}, {AdaptiveAvgPool2d: 1}, Flatten, {Linear: [3, 2]}]}";
// Gradients are exchanged on the first micro-batch instead of the last.
const std::string exchanged_too_early = R"(program:
  automatic_optimization: false
  training_step:
    - if: batch_idx % 2 == 0
      then: [zero_grad, forward, backward]
      else: [{no_sync: [forward, backward]}, optimizer_step]
)";

}  // namespace

TEST_CASE("values go through every layer of transformers and images, in mixed precision too") {
  for (const std::string& layers : {transformer, image}) {
    for (const char* precision : {"", ", precision: bf16-mixed", ", precision: 16-mixed",
                                  ", precision: bf16-true", ", precision: 64-true"}) {
      INFO(layers << precision);
      CHECK(missing(training(layers, "", precision)) == "");
      CHECK(codes(training(layers, "", precision)).empty());
      CHECK(codes(training(layers, exchanged_too_early, precision)) ==
            std::vector<std::string>{"LS305"});
    }
  }
}

TEST_CASE("the layer without arithmetic is named, with what is therefore not judged") {
  const std::string begins = "values of parameters, gradients and losses: layer ";
  const std::string ends =
      "; not judged: the numbers that LS305 and LS306 compare, and logged losses";
  CHECK(missing(training("{input: [4], loss: MSELoss, layers: [{Linear: {in_features: 4, "
                         "out_features: 4, name: first}}, {Dropout: {p: 0.1, name: drop}}]}")) ==
        begins + "`drop` (dropout) has no reference arithmetic: dropout is random in training" +
            ends);
  CHECK(missing(training("{input: [3, 4], loss: MSELoss, layers: [{MultiheadAttention: "
                         "{embed_dim: 4, num_heads: 2, dropout: 0.1, name: attention}}]}")) ==
        begins +
            "`attention` (multihead_attention) has no reference arithmetic: dropout is random in "
            "training" +
            ends);
}

TEST_CASE("dropout that is only evaluated passes values on") {
  const std::string text =
      training("{input: [4], loss: MSELoss, layers: [{Linear: [4, 4]}, {Dropout: 0.5}]}",
               "program: {main: [validate]}\n");
  CHECK(missing(text) == "");
}

TEST_CASE("a model that is too large is said to be, and so is numerics that are off") {
  CHECK(missing(training("{preset: gpt2, seq_len: 16}")) ==
        "values of parameters, gradients and losses: its parameters take 474 MiB, and values are "
        "computed up to 64 MiB unless `verify.numerics` is true; not judged: the numbers that "
        "LS305 and LS306 compare, and logged losses");
  const std::string off = training("{input: [4], loss: MSELoss, layers: [{Linear: [4, 4]}]}",
                                   "verify: {numerics: false}\n");
  CHECK(missing(off).find("`verify.numerics` is false") != std::string::npos);
}

TEST_CASE("verify and run print why nothing is computed") {
  const std::string text =
      training("{input: [4], loss: MSELoss, layers: [{Linear: [4, 4]}, {Dropout: 0.5}]}");
  const cli::Rehearsal rehearsal = std::move(rehearsed(text).front().result);
  const std::string reason = "has no reference arithmetic: dropout is random in training";
  CHECK(render_verify(rehearsal, {}).find(reason) != std::string::npos);
  CHECK(render_run(rehearsal, {}, false).find(reason) != std::string::npos);
  REQUIRE(!rehearsal.coverage.not_looked_at.empty());  // what JSON has
  CHECK(rehearsal.coverage.not_looked_at.front().find(reason) != std::string::npos);
}

TEST_CASE("roundings of 16 bits are not a metric that is wrong") {
  // One device takes the batches of four at once: its gradients round otherwise.
  for (const char* precision : {"bf16-mixed", "bf16-true", "16-true"}) {
    INFO(precision);
    const std::string text =
        "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
        "model: {input: [8], layers: [{Linear: [8, 4]}, GELU, {LayerNorm: [4]}, {Linear: [4, 2]}], "
        "loss: MSELoss}\n"
        "trainer: {accelerator: gpu, devices: 4, strategy: ddp, max_epochs: 2, precision: " +
        std::string(precision) +
        "}\ndata: {train: {samples: 64, batch_size: 4}, val: {samples: 32, batch_size: 4}}\n"
        "program:\n  validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]\n";
    const std::vector<cli::Job> jobs = rehearsed(text);
    const cli::Rehearsal& ran = jobs.front().result;
    REQUIRE(ran.run.preparation.options.numerics);
    for (const Finding& finding : ran.findings) {
      INFO(finding.title);
      CHECK(finding.level == Level::note);
    }
  }
}

}  // namespace missing_values_test
