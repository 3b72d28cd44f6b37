// However layers are cut among ranks, alone, beside replicas or in the stages of a pipeline: what
// is trained is what one device trains, both worlds do the same, and values change no call.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "tests/property/agreement.hpp"
#include "tests/property/clean_rehearsal.hpp"
#include "tests/property/held.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace tensor_parallel_test {

namespace {

constexpr const char* test_name = "ranks that compute layers together train what one device trains";

/// What is done to a part of the network.
enum class Cut : uint8_t { none, pair, gathered, from_whole };

struct Part {
  bool is_attention = false;  ///< and a gated feed-forward; else a feed-forward of two Linears
  Cut cut = Cut::none;
  bool prepared = false;  ///< PrepareModuleInput before its projections
  bool residual = false;
  bool norm = false;
  bool bias = true;
  bool checkpointed = false;
  bool frozen = false;  ///< its first Linear
};

/// A training as a value.
struct TensorCase {
  int32_t stages = 1;
  int32_t replicas = 1;
  int32_t tensor = 2;
  bool in_sequence = false;  ///< positions are divided between the parts
  std::vector<Part> parts;
  Cut embedding = Cut::none;  ///< pair: by rows; gathered: by columns
  Cut output = Cut::none;
  bool rms_norm = false;
  std::string optimizer;
  bool clips = false;
  int32_t accumulate = 1;
  int64_t batch = 2;
  int64_t steps = 2;
  bool units = false;  ///< fully_shard of the residuals

  int32_t ranks() const { return stages * replicas * tensor; }
  bool is_pipeline() const { return stages > 1; }
};

/// The layers and the plan of a case, as a scenario has them.
struct Written {
  std::string layers;
  std::string plan;
  bool cuts_all = true;  ///< every trained parameter is in the plan
  bool has_partial = false;
  int layer_count = 0;

  void layer(const std::string& text) {
    layers += fmt::format("    {}- {}\n", inside ? "      " : "", text);
    ++layer_count;
  }
  void style(const std::string& module, const std::string& how) {
    plan += fmt::format("        {}: {}\n", module, how);
  }
  bool inside = false;
};

constexpr int64_t width = 8;
constexpr int64_t hidden = 16;
constexpr int64_t positions = 4;
constexpr int64_t tokens = 16;

void write_norm(const TensorCase& training, const std::string& name, bool in_sequence,
                Written& to) {
  to.layer(fmt::format("{{{}: [{}], name: {}}}", training.rms_norm ? "RMSNorm" : "LayerNorm", width,
                       name));
  if (in_sequence) {
    to.style(name, "SequenceParallel()");
    to.has_partial = true;
  } else {
    to.cuts_all = false;
  }
}

void write_attention(const TensorCase& training, const Part& part, const std::string& name,
                     Written& to) {
  const bool sequence = training.in_sequence;
  const char* const last = sequence ? "RowwiseParallel(output_layouts=Shard(1))" : "rowwise";
  const auto prepare = [&](const std::string& module) {
    if (sequence || part.prepared) {
      to.style(module, fmt::format("PrepareModuleInput(input_layouts={}, "
                                   "desired_input_layouts=Replicate())",
                                   sequence ? "Shard(1)" : "Replicate()"));
    }
  };
  to.layer(
      fmt::format("{{GroupedQueryAttention: {{embed_dim: {}, num_heads: 4, num_kv_heads: 4}}, "
                  "name: {}.att}}",
                  width, name));
  if (part.cut == Cut::none) {
    to.cuts_all = false;
    return;
  }
  prepare(name + ".att");
  for (const char* projection : {"q_proj", "k_proj", "v_proj"}) {
    to.style(fmt::format("{}.att.{}", name, projection), "colwise");
  }
  to.style(name + ".att.o_proj", last);
}

void write_gated(const TensorCase& training, const Part& part, const std::string& name,
                 Written& to) {
  const bool sequence = training.in_sequence;
  to.layer(fmt::format("{{SwiGLU: [{}, {}], name: {}.gated}}", width, hidden, name));
  if (part.cut == Cut::none) {
    to.cuts_all = false;
    return;
  }
  if (sequence || part.prepared) {
    to.style(name + ".gated", fmt::format("PrepareModuleInput(input_layouts={}, "
                                          "desired_input_layouts=Replicate())",
                                          sequence ? "Shard(1)" : "Replicate()"));
  }
  to.style(name + ".gated.gate_proj", "colwise");
  to.style(name + ".gated.up_proj", "colwise");
  to.style(name + ".gated.down_proj",
           sequence ? "RowwiseParallel(output_layouts=Shard(1))" : "rowwise");
}

void write_feed_forward(const TensorCase& training, const Part& part, const std::string& name,
                        Written& to) {
  const bool sequence = training.in_sequence;
  const auto linear = [&](const char* suffix, int64_t in, int64_t out, bool frozen) {
    to.layer(
        fmt::format("{{Linear: {{in_features: {}, out_features: {}, bias: {}, trainable: {}}}, "
                    "name: {}.{}}}",
                    in, out, part.bias, !frozen, name, suffix));
  };
  linear("up", width, hidden, part.frozen);
  to.layer(fmt::format("{{GELU: {{}}, name: {}.act}}", name));
  linear("down", hidden, width, false);
  if (sequence || part.cut == Cut::pair) {
    to.style(name + ".up", sequence ? "ColwiseParallel(input_layouts=Shard(1))" : "colwise");
    to.style(name + ".down", sequence ? "RowwiseParallel(output_layouts=Shard(1))" : "rowwise");
  } else if (part.cut == Cut::gathered) {
    to.style(name + ".up", "ColwiseParallel(output_layouts=Replicate())");
    to.cuts_all = false;
  } else if (part.cut == Cut::from_whole) {
    to.style(name + ".down", "RowwiseParallel(input_layouts=Replicate())");
    to.cuts_all = false;
  } else {
    to.cuts_all = false;
  }
}

void write_part(const TensorCase& training, const Part& part, const std::string& name,
                Written& to) {
  if (part.residual) {
    to.layers += "    - Residual:\n";
    to.inside = true;
  }
  if (part.norm) {
    write_norm(training, name + ".norm", training.in_sequence, to);
  }
  if (part.is_attention) {
    write_attention(training, part, name, to);
    write_gated(training, part, name, to);
  } else {
    write_feed_forward(training, part, name, to);
  }
  to.inside = false;
  if (part.residual) {
    to.layers +=
        fmt::format("      name: \"\"\n{}", part.checkpointed ? "      checkpoint: true\n" : "");
  }
}

Written written(const TensorCase& training) {
  Written to;
  to.layer(fmt::format("{{Embedding: [{}, {}], name: embedding}}", tokens, width));
  if (training.in_sequence) {
    to.style("embedding", "RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))");
  } else if (training.embedding == Cut::pair) {
    to.style("embedding", "RowwiseParallel(input_layouts=Replicate())");
  } else if (training.embedding == Cut::gathered) {
    to.style("embedding", "ColwiseParallel(output_layouts=Replicate())");
  } else {
    to.cuts_all = false;
  }
  for (size_t i = 0; i < training.parts.size(); ++i) {
    write_part(training, training.parts[i], fmt::format("part{}", i), to);
  }
  write_norm(training, "norm", training.in_sequence, to);
  to.layer(fmt::format("{{Linear: [{}, {}], name: output}}", width, tokens));
  if (training.in_sequence) {
    to.style("output", "ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())");
  } else if (training.output != Cut::none) {
    to.style("output", "ColwiseParallel(output_layouts=Replicate())");
  } else {
    to.cuts_all = false;
  }
  return to;
}

/// Torch clips neither parameters of which some are in the plan nor, without replicas, those of
/// which each rank has a term of the gradient (docs/strategies/tensor-parallel.md).
bool can_clip(const TensorCase& training, const Written& what) {
  return training.is_pipeline() ||
         ((what.cuts_all || what.plan.empty()) && (training.replicas > 1 || !what.has_partial));
}

std::string strategy_of(const TensorCase& training, const Written& what) {
  const std::string sizes = fmt::format("      tensor_parallel_size: {}\n", training.tensor);
  const std::string plan = what.plan.empty() ? "" : "      parallelize_plan:\n" + what.plan;
  if (training.is_pipeline()) {
    return fmt::format(
        "    PipelineStrategy:\n      schedule: 1F1B\n      n_microbatches: {}\n"
        "      pipeline_parallel_size: {}\n      split: parameters\n{}{}",
        training.stages, training.stages, sizes, plan);
  }
  const bool has_blocks = what.layers.find("Residual") != std::string::npos;
  const char* const units =
      training.units && has_blocks ? "      fully_shard: {modules: [Residual]}\n" : "";
  return fmt::format("    ModelParallelStrategy:\n      data_parallel_size: {}\n{}{}{}",
                     training.replicas, sizes, training.replicas > 1 ? units : "", plan);
}

std::string text_of(const TensorCase& training, bool numerics) {
  const Written what = written(training);
  const int64_t batch = training.is_pipeline() ? training.batch * training.stages : training.batch;
  return fmt::format(
      "version: 1\ncluster: {{preset: dgx-a100, nodes: 1}}\n"
      "model:\n  input: [{}]\n  input_dtype: int64\n  layers:\n{}  loss: CrossEntropyLoss\n"
      "optimizer: {}\n"
      "data: {{train: {{samples: {}, batch_size: {}}}}}\n"
      "trainer:\n  accelerator: gpu\n  devices: {}\n  max_epochs: 1\n"
      "  num_sanity_val_steps: 0\n  enable_checkpointing: false\n{}{}"
      "  strategy:\n{}verify: {{numerics: {}}}\n",
      positions, what.layers, training.optimizer,
      batch * training.replicas * training.steps * training.accumulate, batch, training.ranks(),
      training.clips && can_clip(training, what) ? "  gradient_clip_val: 0.05\n" : "",
      training.accumulate > 1 ? fmt::format("  accumulate_grad_batches: {}\n", training.accumulate)
                              : "",
      strategy_of(training, what), numerics);
}

std::ostream& operator<<(std::ostream& out, const TensorCase& training) {
  return out << text_of(training, true);
}

rc::Gen<bool> sometimes() { return rc::gen::element(true, false); }

Part drawn_part(const TensorCase& training) {
  Part part;
  part.is_attention = *rc::gen::element(true, false, false);
  part.cut = training.in_sequence ? Cut::pair
                                  : *rc::gen::element(Cut::pair, Cut::pair, Cut::none,
                                                      Cut::gathered, Cut::from_whole);
  part.prepared = *sometimes();
  // What a norm gives in sequence is a DTensor, which a gated feed-forward gathers by itself.
  part.residual = *sometimes();
  part.norm = *sometimes();
  part.bias = *sometimes();
  part.checkpointed = part.residual && *sometimes();
  part.frozen = !part.is_attention && *rc::gen::element(false, false, true);
  return part;
}

rc::Gen<TensorCase> tensor_cases() {
  return rc::gen::exec([] {
    TensorCase training;
    training.stages = *rc::gen::element(1, 1, 1, 2);
    training.tensor = *rc::gen::element(2, 2, 4);
    training.replicas = training.stages * training.tensor > 4 ? 1 : *rc::gen::element(1, 2);
    training.in_sequence = *sometimes();
    training.embedding = *rc::gen::element(Cut::none, Cut::pair, Cut::gathered);
    training.output = *rc::gen::element(Cut::none, Cut::gathered);
    training.rms_norm = *sometimes();
    training.optimizer = *rc::gen::element<std::string>("{SGD: {lr: 0.1, momentum: 0.9}}",
                                                        "{SGD: {lr: 0.1}}", "{AdamW: {lr: 0.01}}");
    training.clips = *sometimes();
    training.accumulate = training.is_pipeline() ? 1 : *rc::gen::element(1, 1, 2);
    training.batch = *rc::gen::element<int64_t>(1, 2, 3);
    training.steps = *rc::gen::element<int64_t>(1, 2, 3);
    training.units = *sometimes();
    const int count = *rc::gen::element(1, 2, 3);
    for (int i = 0; i < count; ++i) {
      training.parts.push_back(drawn_part(training));
    }
    return training;
  });
}

/// What a rank has called: kind, type, size and group.
std::vector<std::string> calls_of(const cli::Rehearsal& rehearsal, int32_t rank) {
  std::vector<std::string> calls;
  rehearsal.run.result.journal->lane(rank, 0).for_each([&](const Row& row) {
    if (row.row == RowKind::op && is_collective(row.kind)) {
      calls.push_back(fmt::format("{} {} {} {}", name_of(row.kind), name_of(row.dtype), row.bytes,
                                  row.group.value));
    }
  });
  return calls;
}

void expect_same_calls(const cli::Rehearsal& a, const cli::Rehearsal& b, int32_t ranks,
                       const char* what) {
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const std::vector<std::string> ours = calls_of(a, rank);
    const std::vector<std::string> theirs = calls_of(b, rank);
    for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
      if (ours[i] != theirs[i]) {
        RC_LOG() << fmt::format("{}: rank {} call {}: {} and {}\n", what, rank, i, ours[i],
                                theirs[i]);
      }
    }
    RC_ASSERT(ours == theirs);
  }
}

}  // namespace

TEST_CASE("ranks that compute layers together train what one device trains") {
  Distribution distribution;
  const bool held = holds(test_name, 150, [&] {
    const TensorCase training = *tensor_cases();
    distribution.draw();
    const std::string text = text_of(training, true);
    RC_LOG() << text;
    // Findings are those of every training: LS306 compares with one device.
    const cli::Rehearsal valued = clean_rehearsal(text, cli::World::simulated);
    RC_ASSERT(valued.run.preparation.options.numerics);
    const cli::Rehearsal bare = clean_rehearsal(text_of(training, false), cli::World::simulated);
    RC_ASSERT(!bare.run.preparation.options.numerics);
    expect_same_calls(valued, bare, training.ranks(), "with and without values");
    if (*rc::gen::element(true, false, false, false)) {
      const cli::Rehearsal real = clean_rehearsal(text, cli::World::threads);
      expect_same_calls(valued, real, training.ranks(), "simulated and real");
      distribution.count("on threads");
    }
    distribution.count_case();
    distribution.count(training.is_pipeline() ? "pipeline" : "one stage");
    distribution.count(training.in_sequence ? "in sequence" : "not in sequence");
    distribution.count((text.find("gradient_clip_val") != std::string::npos) ? "clipped"
                                                                             : "not clipped");
  });
  distribution.print(test_name);
  REQUIRE(held);
}

}  // namespace tensor_parallel_test
