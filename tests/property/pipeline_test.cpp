// However a model is cut into stages, and in whatever order micro-batches go through them: what is
// trained is what one device trains, no rank waits forever, and the time is that of all steps.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "model/strategy/pipeline/schedule.hpp"
#include "tests/property/agreement.hpp"
#include "tests/property/held.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace pipeline_test {

namespace {

constexpr const char* test_name = "a pipeline trains what one device trains";

/// A training as a value.
struct PipelineCase {
  PipelineScheduleKind kind = PipelineScheduleKind::gpipe;
  PipelineShape shape;
  int32_t pipelines = 1;
  std::string split;
  std::string optimizer;
  std::string trainer;
  std::vector<int64_t> widths;  ///< of the layers between input and output
  bool shares_embedding = false;
  std::string sharded;       ///< the argument fully_shard; empty: none
  int64_t samples_each = 1;  ///< of a micro-batch
  int64_t steps = 2;
};

std::string layers_of(const PipelineCase& training) {
  constexpr int64_t tokens = 7;
  std::string layers =
      fmt::format("    - {{Embedding: [{}, {}], name: embedding}}\n", tokens, training.widths[0]);
  for (size_t i = 1; i < training.widths.size(); ++i) {
    layers += fmt::format("    - Linear: [{}, {}]\n    - GELU\n", training.widths[i - 1],
                          training.widths[i]);
  }
  const int64_t last = training.widths.back();
  return layers +
         (training.shares_embedding
              ? fmt::format("    - {{Linear: {{in_features: {}, out_features: {}, bias: false, "
                            "tied_to: embedding}}}}\n",
                            last, tokens)
              : fmt::format("    - Linear: [{}, {}]\n", last, tokens));
}

std::string text_of(const PipelineCase& training, bool all_steps) {
  const int64_t batch = training.shape.micro_batches * training.samples_each;
  return fmt::format(
      "version: 1\n"
      "cluster: {{preset: dgx-a100, nodes: 1}}\n"
      "model:\n  input: [2]\n  input_dtype: int64\n  layers:\n{}  loss: CrossEntropyLoss\n"
      "optimizer: {}\n"
      "data: {{train: {{samples: {}, batch_size: {}}}}}\n"
      "trainer:\n"
      "  accelerator: gpu\n"
      "  devices: {}\n"
      "  max_epochs: 1\n"
      "{}"
      "  strategy: {{PipelineStrategy: {{schedule: {}, n_microbatches: {}, "
      "pipeline_parallel_size: {}, stages: {}, split: {}{}}}}}\n"
      "verify: {{all_steps: {}}}\n",
      layers_of(training), training.optimizer, batch * training.pipelines * training.steps, batch,
      training.shape.ranks * training.pipelines, training.trainer, name_of(training.kind),
      training.shape.micro_batches, training.shape.ranks, training.shape.stages(), training.split,
      training.sharded, all_steps);
}

std::ostream& operator<<(std::ostream& out, const PipelineCase& training) {
  return out << text_of(training, false);
}

rc::Gen<PipelineCase> pipeline_cases() {
  return rc::gen::exec([] {
    PipelineCase training;
    training.kind = static_cast<PipelineScheduleKind>(*rc::gen::element(0, 1, 2, 3, 4, 5, 6));
    training.shape.placement = placement_of(training.kind);
    training.shape.ranks = *rc::gen::element(1, 2, 2, 3, 4);
    const bool several = !is_single_stage(training.kind);
    const bool is_v = training.shape.placement == StagePlacement::v;
    const bool is_dual = training.kind == PipelineScheduleKind::dual_pipe_v;
    training.shape.stages_per_rank = !several ? 1 : is_v ? 2 : *rc::gen::element(1, 2, 3);
    training.pipelines =
        training.shape.ranks <= 2 ? *rc::gen::element(1, 1, 2, 3) : *rc::gen::element(1, 2);
    const bool has_any = training.kind == PipelineScheduleKind::gpipe ||
                         training.kind == PipelineScheduleKind::zero_bubble_v;
    training.shape.micro_batches = has_any   ? *rc::gen::element(1, 2, 3, 5, 8)
                                   : is_dual ? 2 * training.shape.ranks + *rc::gen::element(0, 1, 3)
                                             : training.shape.ranks * *rc::gen::element(1, 2, 3);
    training.split = *rc::gen::element<std::string>("parameters", "time");
    training.optimizer = *rc::gen::element<std::string>("{SGD: {lr: 0.1, momentum: 0.9}}",
                                                        "{SGD: {lr: 0.1}}", "{AdamW: {lr: 0.01}}");
    training.shares_embedding = *rc::gen::element(true, false);
    const int64_t stages = training.shape.stages();
    const int64_t count = std::max<int64_t>(2, stages / 2 + *rc::gen::element<int64_t>(1, 2));
    for (int64_t i = 0; i < count; ++i) {
      training.widths.push_back(*rc::gen::element<int64_t>(1, 2, 3, 5, 6));
    }
    if (training.shares_embedding) {
      training.widths.back() = training.widths.front();
    } else {
      training.trainer = *rc::gen::element<std::string>("", "  gradient_clip_val: 0.05\n");
    }
    if (!training.shares_embedding) {
      // Modules that are freed lose gradients where those of weights come apart.
      const bool comes_apart = training.kind >= PipelineScheduleKind::interleaved_zero_bubble;
      training.sharded = *rc::gen::element<std::string>(
          "", ", fully_shard: {modules: [Linear], reshard_after_forward: false}",
          comes_apart ? "" : ", fully_shard: {modules: [Linear]}",
          comes_apart ? "" : ", fully_shard: {reshard_after_forward: true, modules: [Embedding]}");
    }
    training.samples_each = *rc::gen::element<int64_t>(1, 2);
    training.steps = *rc::gen::element<int64_t>(1, 2, 3, 12);
    return training;
  });
}

cli::Rehearsal rehearsal_of(const std::string& text) {
  std::vector<cli::Job> jobs = rehearsed(text);
  RC_ASSERT(jobs.size() == 1U);
  return std::move(jobs.front().result);
}

/// One that ran, and found nothing.
cli::Rehearsal sound_rehearsal_of(const std::string& text) {
  RC_LOG() << text;
  cli::Rehearsal rehearsal = rehearsal_of(text);
  for (const Problem& problem : rehearsal.problems) {
    RC_LOG() << problem.message << "\n";
  }
  RC_ASSERT(rehearsal.ran());
  for (const Finding& finding : rehearsal.findings) {
    RC_LOG() << finding.code << " " << finding.title << "\n";
  }
  RC_ASSERT(rehearsal.findings.empty());
  return rehearsal;
}

}  // namespace

TEST_CASE("a pipeline trains what one device trains") {
  Distribution distribution;
  const bool held = holds(test_name, 150, [&] {
    const PipelineCase training = *pipeline_cases();
    distribution.draw();
    const cli::Rehearsal rehearsal = sound_rehearsal_of(text_of(training, false));
    RC_ASSERT(rehearsal.run.preparation.options.numerics);
    const cli::Rehearsal whole = rehearsal_of(text_of(training, true));
    RC_ASSERT(rehearsal.run.result.total_time == whole.run.result.total_time);
    distribution.count_case();
    distribution.count(std::string(name_of(training.kind)));
    distribution.count(training.sharded.empty() ? "replicas" : "fully_shard");
  });
  distribution.print(test_name);
  REQUIRE(held);
}

namespace {

constexpr const char* asynchronous_test =
    "an asynchronous pipeline takes the time of all its steps";

rc::Gen<PipelineCase> asynchronous_cases() {
  return rc::gen::exec([] {
    PipelineCase training;
    training.kind = *rc::gen::element(PipelineScheduleKind::pipe_dream,
                                      PipelineScheduleKind::pipe_dream_double_buffered);
    const bool is_pipe_dream = training.kind == PipelineScheduleKind::pipe_dream;
    training.shape.ranks = *rc::gen::element(1, 2, 3, 4);
    training.shape.micro_batches =
        is_pipe_dream ? 1 : training.shape.ranks + *rc::gen::element(0, 1, 4);
    training.split = *rc::gen::element<std::string>("parameters", "time");
    training.optimizer = *rc::gen::element<std::string>("{SGD: {lr: 0.01, momentum: 0.9}}",
                                                        "{SGD: {lr: 0.01}}", "{AdamW: {lr: 0.01}}");
    training.trainer = *rc::gen::element<std::string>("",
                                                      "  gradient_clip_val: 0.05\n"
                                                      "  gradient_clip_algorithm: value\n");
    for (int64_t i = 0; i < 3; ++i) {
      training.widths.push_back(*rc::gen::element<int64_t>(1, 2, 3, 5, 6));
    }
    training.samples_each = *rc::gen::element<int64_t>(1, 2);
    training.steps = *rc::gen::element<int64_t>(1, 2, 3, 12, 40);
    return training;
  });
}

}  // namespace

TEST_CASE("an asynchronous pipeline takes the time of all its steps") {
  Distribution distribution;
  const bool held = holds(asynchronous_test, 60, [&] {
    const PipelineCase training = *asynchronous_cases();
    distribution.draw();
    const cli::Rehearsal rehearsal = sound_rehearsal_of(text_of(training, false));
    const cli::Rehearsal whole = rehearsal_of(text_of(training, true));
    RC_ASSERT(rehearsal.run.result.total_time == whole.run.result.total_time);
    for (size_t rank = 0; rank < rehearsal.run.preparation.log->ranks.size(); ++rank) {
      RC_ASSERT(rehearsal.run.preparation.log->ranks[rank].staleness ==
                whole.run.preparation.log->ranks[rank].staleness);
    }
    distribution.count_case();
    distribution.count(std::string(name_of(training.kind)));
  });
  distribution.print(asynchronous_test);
  REQUIRE(held);
}

}  // namespace pipeline_test
