// What a pipeline cannot do with its sizes and cuts: the place, and a remedy with which it can.
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace pipeline_remedies_test {

namespace {

struct Setting {
  std::string strategy;
  int devices = 4;
  std::string layers = "{Linear: [4, 4]}, {repeat: 4, layers: [{Linear: [4, 4]}, ReLU]}";
  std::string name = "PipelineStrategy";
  int batch_size = 8;
  std::string data{};
};

std::string text_of(const Setting& set) {
  return "version: 1\nmodel: {input: [4], loss: MSELoss, layers: [" + set.layers +
         "]}\ndata: {train: {samples: 16, batch_size: " + std::to_string(set.batch_size) + "}" +
         set.data + "}\ntrainer: {accelerator: gpu, max_steps: 1, num_sanity_val_steps: 0, " +
         "devices: " + std::to_string(set.devices) + ",\n  strategy: {" + set.name + ": {" +
         set.strategy + "}}}\n";
}

Problem stop_of(const Setting& set) {
  for (const Problem& problem :
       prepare(scenario_of(text_of(set)), standard_strategies()).problems) {
    if (problem.stops()) {
      CHECK(problem.place.line == 5);
      return problem;
    }
  }
  return {Problem::Kind::note, {}, ""};
}

std::string remedy_of(const std::string& strategy, int devices = 4) {
  return stop_of({.strategy = strategy, .devices = devices}).remedy;
}

bool runs(const Setting& set) {
  const Problem stop = stop_of(set);
  UNSCOPED_INFO(stop.message);
  return stop.message.empty();
}

size_t count_stops(const Setting& set) {
  size_t count = 0;
  for (const Problem& problem :
       prepare(scenario_of(text_of(set)), standard_strategies()).problems) {
    count += problem.stops() ? 1 : 0;
  }
  return count;
}

std::string end_of(const Setting& set) {
  return run_text(text_of(set), standard_strategies()).result.ends[0].message;
}

}  // namespace

TEST_CASE("too few micro-batches, or an odd number of them, come with numbers that would do") {
  const auto written = [](const std::string& numbers) {
    return "write n_microbatches: " + numbers + ", and a batch_size that it divides";
  };
  CHECK(remedy_of("schedule: 1F1B, n_microbatches: 2") == written("4"));
  CHECK(remedy_of("schedule: DualPipeV, n_microbatches: 2", 2) == written("4"));
  CHECK(remedy_of("schedule: Interleaved1F1B, n_microbatches: 5, pipeline_parallel_size: 2") ==
        written("4 or 6"));
  CHECK(remedy_of("schedule: InterleavedZeroBubble, n_microbatches: 5, pipeline_parallel_size: "
                  "2") == written("4 or 6"));
  CHECK(remedy_of("schedule: PipeDream-2BW, n_microbatches: 2") == written("4 or more"));
  CHECK(runs({.strategy = "schedule: 1F1B, n_microbatches: 4"}));
  CHECK(runs({.strategy = "schedule: DualPipeV, n_microbatches: 4", .devices = 2}));
  CHECK(runs({.strategy = "schedule: Interleaved1F1B, n_microbatches: 4, pipeline_parallel_size: "
                          "2"}));
}

TEST_CASE("a schedule names itself once, and its number of stages at their place") {
  const Setting v{.strategy = "schedule: ZBVZeroBubble, n_microbatches: 8, stages: 2",
                  .devices = 2};
  CHECK(stop_of(v).remedy == "write stages: 4");
  CHECK(count_stops(v) == 1);
  const Problem one = stop_of({.strategy = "schedule: 1F1B, stages: 4, pipeline_parallel_size: 2"});
  CHECK(one.message == "1F1B takes one stage per rank, here 2");
  CHECK(one.remedy == "write stages: 2, or schedule: Interleaved1F1B");
  CHECK(remedy_of("schedule: 1F1B, stages: 8") ==
        "write stages: 1, 2 or 4, which divides the number of ranks, or schedule: "
        "Interleaved1F1B");
  CHECK(remedy_of("schedule: Interleaved1F1B, stages: 6") ==
        "write stages: 4 or 8, a multiple of the ranks of a pipeline");
  CHECK(remedy_of("pipeline_parallel_size: 3") ==
        "write pipeline_parallel_size: 1, 2 or 4, which divides the number of ranks");
  CHECK(remedy_of("tensor_parallel_size: 3") ==
        "write tensor_parallel_size: 1, 2 or 4, which divides the number of ranks");
}

TEST_CASE("cuts that cannot be come with those that can") {
  CHECK(remedy_of("split: [1, 3]") == "write 3 layers in split, or use 3 stages");
  CHECK(remedy_of("split: [1, 3, 90]") == "write ascending numbers from 1 to 8");
  const std::string residual =
      "{Linear: [4, 4]}, {Residual: [{Linear: [4, 4]}, ReLU]}, {Linear: [4, 4]}";
  Setting inside{.strategy = "split: [2]", .devices = 2, .layers = residual};
  CHECK(stop_of(inside).remedy == "cut before layer 1 or 5");
  inside.strategy = "split: [5]";
  CHECK(runs(inside));
  CHECK(stop_of({.strategy = "", .layers = residual}).remedy == "use 3 stages at most");
  CHECK(stop_of({.strategy = "split: blocks", .devices = 2, .layers = residual}).remedy ==
        "write split: parameters, or put what repeats into `repeat`");
  CHECK(remedy_of("split: blocks", 8) == "write split: parameters, or use 4 stages at most");
  CHECK(runs({.strategy = "split: parameters", .devices = 8}));
  const Problem ends = stop_of({.strategy = "split: blocks, first_stage_less_blocks: 2"});
  CHECK(ends.remedy == "let them count as fewer blocks, or use fewer stages");
}

TEST_CASE("what is no cut, and ends that leave a stage nothing, are no default") {
  CHECK(stop_of({.strategy = "split: {first: 1}", .devices = 2}).message ==
        "split takes blocks, parameters, time or a list of layers");
  const Problem ends = stop_of({.strategy = "first_stage_less_blocks: 99", .devices = 2});
  CHECK(ends.message.find("leave the first or the last") != std::string::npos);
  CHECK(runs({.strategy = "first_stage_less_blocks: 1", .devices = 2}));
}

TEST_CASE("a release of torch that lacks a schedule is refused with the one that has it") {
  const auto refusal = [](const std::string& torch, const std::string& strategy) {
    std::string text = text_of({.strategy = strategy, .devices = 2});
    text.replace(0, text.find('\n'), "version: 1\nversions: {torch: '" + torch + "'}");
    for (const Problem& problem : prepare(scenario_of(text), standard_strategies()).problems) {
      if (problem.stops()) {
        return problem.message;
      }
    }
    return std::string();
  };
  CHECK(refusal("2.3", "schedule: 1F1B") == "torch.distributed.pipelining came with torch 2.4");
  CHECK(refusal("2.4", "schedule: 1F1B").empty());
  CHECK(refusal("2.8", "schedule: DualPipeV, n_microbatches: 4") ==
        "the schedule DualPipeV came with torch 2.9");
  CHECK(refusal("2.6", "schedule: 1F1B, scale_grads: true") ==
        "scale_grads of a pipeline's schedule came with torch 2.7");
  CHECK(refusal("2.3", "schedule: PipeDream").empty());  // none of torch's
}

TEST_CASE("batches of other sizes say which size every batch has to have") {
  CHECK(end_of({.strategy = "schedule: GPipe, n_microbatches: 4, pipeline_parallel_size: 2",
                .batch_size = 6})
            .ends_with("use a batch_size that n_microbatches (4) divides, such as 4 or 8"));
  const std::string other =
      end_of({.strategy = "schedule: GPipe, n_microbatches: 4, pipeline_parallel_size: 2",
              .data = ", val: {samples: 8, batch_size: 4}"});
  CHECK(
      other.ends_with("give every batch 8 samples, those of evaluations, too, and set drop_last: "
                      "true where the last one has fewer"));
}

TEST_CASE("naive model parallelism says what to do about its devices") {
  Setting set{.strategy = "split: [2]", .devices = 3, .name = "NaiveModelParallelStrategy"};
  CHECK(end_of(set) ==
        "the layers cannot be put on 3 devices, a stage on each: 3 stages have 2 cuts, here 1; "
        "write 2 layers in split, or use 2 stages");
  set.devices = 2;
  CHECK(end_of(set).empty());
}

}  // namespace pipeline_remedies_test
