// One rank that runs for all that do the same gives what each of them would have done: every
// operation of every rank with its times, the memory, the measurements and the findings.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "io/scenario/load/load.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/measure/measure.hpp"
#include "rehearsal/run/configuration.hpp"
#include "tests/property/agreement.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr const char* test_name = "a rank that runs for others does what they would have done";
constexpr const char* default_parameters = "seed=1 max_success=120";

std::string one_of(const std::vector<std::string>& texts) { return *rc::gen::elementOf(texts); }

/// A scenario as a value, up to whether every rank is to be run.
struct WideCase {
  std::string text;
};

std::string text_of(const WideCase& wide, bool all_ranks) {
  return wide.text + fmt::format("verify: {{numerics: false, all_ranks: {}}}\n", all_ranks);
}

std::ostream& operator<<(std::ostream& out, const WideCase& wide) {
  return out << text_of(wide, false);
}

// Some of them hang, or name ranks in ways by which no two are alike.
std::vector<std::string> hooks() {
  return {
      "",
      "",
      "{training_step: [forward, {log: {name: loss, value: loss}}]}",
      "{training_step: [forward, {log: {name: loss, value: loss, sync_dist: true}}]}",
      "{training_step: [forward, {log: {name: loss, value: loss, on_epoch: true, sync_dist: "
      "true}}]}",
      "{on_train_batch_end: [{if: rank == 0, then: [{host: 30 us}]}]}",
      "{on_train_batch_end: [{if: is_global_zero, then: [{kernel: 20 us}], else: [{kernel: 5 "
      "us}]}]}",
      "{on_train_batch_end: [{if: local_rank == 1, then: [{host: 30 us}]}]}",
      "{on_train_batch_end: [{if: node_rank == 2, then: [{host: 9 us}]}]}",
      "{on_train_batch_end: [{if: rank % 2 == 0, then: [{kernel: 7 us}]}]}",
      "{on_train_batch_end: [{if: rank == 3, then: [{kernel: 40 us}]}]}",
      "{on_train_batch_end: [{let: {x: rank + 1}}, {if: x == 1, then: [{host: 5 us}]}]}",
      "{on_train_batch_end: [{if: batch_idx % 3 == 0, then: [barrier]}]}",
      "{on_train_batch_end: [{if: rank == 0, then: [barrier]}]}",
      "{on_train_batch_end: [{if: rank > 1, then: [barrier]}]}",
      "{on_train_epoch_end: [barrier, {host: 1 ms}]}",
      "{validation_step: [forward, {log: {name: val, value: loss, sync_dist: true}}]}",
  };
}

/// A way to train, with the versions and the optimizer that it needs.
struct WayToTrain {
  std::string strategy;
  std::string lightning = "2.6";
  std::string optimizer = "Adam: {lr: 0.01}";
};

std::string wrapped() {
  return one_of({"", ", auto_wrap_policy: [Linear]", ", auto_wrap_policy: [Linear]"});
}

WayToTrain fsdp() {
  return {
      fmt::format("{{FSDPStrategy: {{sharding_strategy: {}, use_orig_params: {}, cpu_offload: {}, "
                  "state_dict_type: {}, sync_module_states: {}{}}}}}",
                  one_of({"FULL_SHARD", "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD"}),
                  one_of({"true", "true", "true", "false"}), one_of({"false", "false", "true"}),
                  one_of({"full", "sharded"}), one_of({"false", "true"}), wrapped())};
}

WayToTrain fsdp2(int ranks) {
  return {fmt::format(
      "{{ModelParallelStrategy: {{data_parallel_size: {}, tensor_parallel_size: 1, "
      "save_distributed_checkpoint: {}, fully_shard: {{modules: [Linear]{}}}}}}}",
      ranks, one_of({"false", "true"}),
      one_of({"", "", ", offload_policy: CPUOffloadPolicy", ", reshard_after_forward: false"}))};
}

WayToTrain deepspeed() {
  const std::string offload = one_of({"", "", ", offload_optimizer: {device: cpu}"});
  return {fmt::format(
      "{{DeepSpeedStrategy: {{config: {{zero_optimization: {{stage: {}, reduce_bucket_size: {}, "
      "stage3_prefetch_bucket_size: {}, stage3_param_persistence_threshold: {}{}}}}}}}}}",
      one_of({"0", "1", "2", "3", "3", "3"}), one_of({"40", "200", "100000"}), one_of({"0", "90"}),
      one_of({"0", "12", "100000"}), offload)};
}

WayToTrain zero_redundancy() {
  return {one_of({"ddp", "ddp_find_unused_parameters_true"}), "2.6",
          fmt::format("ZeroRedundancyOptimizer: {{optimizer_class: Adam, lr: 0.01, "
                      "parameters_as_bucket_view: {}}}",
                      one_of({"false", "true"}))};
}

WayToTrain fairscale() {
  return {
      one_of({"ddp_sharded", "{DDPShardedStrategy: {reduce_buffer_size: 0}}", "ddp_fully_sharded",
              "{DDPFullyShardedStrategy: {auto_wrap_policy: [Linear], bucket_cap_mb: 0}}"}),
      "1.9"};
}

constexpr int first_of_replicas = 7;

WayToTrain way_to_train(int kind, int ranks) {
  switch (kind) {
    case 0:
    case 1: return fsdp();
    case 2: return fsdp2(ranks);
    case 3:
    case 4: return deepspeed();
    case 5: return zero_redundancy();
    case 6: return fairscale();
    default:
      return {one_of({"ddp", "ddp", "ddp_find_unused_parameters_true",
                      "{DDPStrategy: {static_graph: true}}",
                      "{DDPStrategy: {gradient_as_bucket_view: true, bucket_cap_mb: 1}}",
                      "{DDPStrategy: {ddp_comm_hook: fp16_compress_hook}}", "ddp"})};
  }
}

WideCase wide_training() {
  const int kind = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 12));
  // Of ranks that divide the weights few are alike, unless there are many.
  const int nodes = kind < first_of_replicas ? *rc::gen::element(3, 6, 12, 20, 24)
                                             : *rc::gen::element(2, 3, 4, 5, 6);
  const int devices = *rc::gen::element(1, 1, 2, 3);
  const int ranks = nodes * devices;
  const int batch = *rc::gen::inRange(1, 4);
  const int samples = *rc::gen::inRange(2, 9) * batch * ranks + *rc::gen::element(0, 0, 1, -1);
  const std::string own_size = *rc::gen::element(0, 0, 0, 0, 0, 0, 1) == 1 ? "1 + rank % 2" : "";
  const std::string loader =
      one_of({"", "", ", drop_last: true", ", sample_time: 5 us",
              ", sample_time: 40 us, num_workers: 2", ", sampler: unrepeated"});
  std::string trainer = one_of({"", ", accumulate_grad_batches: 2", ", precision: bf16-mixed",
                                ", gradient_clip_val: 0.5", ", max_steps: 5"});
  trainer += one_of({"", "", ", enable_checkpointing: false",
                     ", callbacks: [{ModelCheckpoint: {every_n_train_steps: 3}}]"});
  trainer += one_of({"", "", ", num_sanity_val_steps: 0"});
  const WayToTrain way = way_to_train(kind, ranks);
  // Some cut into equal parts by any of these numbers of ranks, some not.
  const int hidden = *rc::gen::element(9, 12, 64, 96, 720);
  const std::string validation =
      *rc::gen::element(true, false)
          ? fmt::format(", val: {{samples: {}, batch_size: 2}}", *rc::gen::inRange(1, 40))
          : std::string();
  const std::string program = one_of(hooks());
  return {fmt::format(
      "version: 1\n"
      "versions: {{lightning: \"{}\"}}\n"
      "cluster: {{preset: dgx-a100, nodes: {}}}\n"
      "optimizer: {{{}}}\n"
      "model: {{input: [6], layers: [{{Linear: [6, {}]}}, {}, {{Linear: [{}, 3]}}], loss: "
      "MSELoss}}\n"
      "data: {{train: {{samples: {}, batch_size: {}{}}}{}}}\n"
      "trainer: {{accelerator: gpu, devices: {}, num_nodes: {}, strategy: {}, max_epochs: {}{}}}\n"
      "{}",
      way.lightning, nodes, way.optimizer, hidden,
      one_of({"ReLU", fmt::format("{{BatchNorm1d: {}}}", hidden)}), hidden, std::max(samples, 1),
      own_size.empty() ? fmt::to_string(batch) : own_size, loader, validation, devices, nodes,
      way.strategy, *rc::gen::inRange(1, 4), trainer,
      program.empty() ? "" : "program: " + program + "\n")};
}

WideCase wide_bare_program() {
  const int ranks = *rc::gen::inRange(3, 12);
  std::string statements;
  for (int count = *rc::gen::inRange(1, 6); count > 0; --count) {
    statements +=
        one_of({"kernel: 1 ms", "host: 20 us", "barrier: null",
                "all_reduce: {elements: 100, async: true, as: sum}", "all_gather: {elements: 10}",
                "broadcast: {elements: 7, src: 0}", "broadcast: {elements: 7, src: 2}",
                "if: rank == 0, then: [{kernel: 2 ms}]",
                "if: rank < 2, then: [{host: 2 ms}], else: [{kernel: 3 ms}]",
                "if: rank == 1, then: [{all_reduce: {elements: 3}}]",
                "if: rank != 4, then: [{kernel: 10 us}]", "send: {elements: 4, dst: 0}"});
    statements += "\x1f";
  }
  std::string list;
  for (size_t begin = 0; begin < statements.size();) {
    const size_t end = statements.find('\x1f', begin);
    list += (list.empty() ? "{" : ", {") + statements.substr(begin, end - begin) + "}";
    begin = end + 1;
  }
  return {
      fmt::format("version: 1\n"
                  "cluster: {{ranks: {}, network: {{bandwidth: 10 GB/s, latency: 3 us}}}}\n"
                  "program: {{main: [{{repeat: {}, do: [{}]}}, synchronize: null]}}\n",
                  ranks, *rc::gen::inRange(1, 4), list)};
}

rc::Gen<WideCase> wide_cases() {
  return rc::gen::exec([] {
    return *rc::gen::element(true, true, true, false) ? wide_training() : wide_bare_program();
  });
}

Scenario scenario_of(const std::string& text) {
  const FileReader reader = [&](const std::string&,
                                size_t) -> std::variant<std::string, FileError> { return text; };
  LoadedScenarios loaded = load_scenario_file("scenario.yaml", {}, reader);
  for (const auto& diagnostic : loaded.diagnostics) {
    RC_LOG() << diagnostic.message << "\n";
  }
  RC_ASSERT(loaded.ok());
  return loaded.scenarios.front();
}

void expect_same_lane(const LaneJournal& lane, const LaneJournal& of_all, int32_t rank) {
  RC_ASSERT(lane.size() == of_all.size());
  for (int64_t index = 0; index < lane.size(); ++index) {
    const Row row = lane.row(index);
    if (row != of_all.row(index)) {
      RC_FAIL(fmt::format("rank {}, row {}: {}; by itself: {}", rank, index, text_of(row),
                          text_of(of_all.row(index))));
    }
    if (row.row != RowKind::op) {
      continue;
    }
    const Completion one = lane.completion(row.sequence);
    const Completion other = of_all.completion(row.sequence);
    if (one.issue != other.issue || one.start != other.start || one.finish != other.finish ||
        one.outcome != other.outcome) {
      RC_FAIL(fmt::format("rank {}, row {}: {} from {} to {} ps; by itself from {} to {} ps", rank,
                          index, text_of(row), one.start.count(), one.finish.count(),
                          other.start.count(), other.finish.count()));
    }
  }
}

void expect_same(const cli::OneRun& run, const cli::OneRun& of_all) {
  RC_ASSERT(run.result.total_time == of_all.result.total_time);
  RC_ASSERT(run.result.hung == of_all.result.hung);
  RC_ASSERT(run.result.operations == of_all.result.operations);
  for (int32_t rank = 0; rank < of_all.result.journal->ranks(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    RC_ASSERT(run.result.journal->lanes(rank) == of_all.result.journal->lanes(rank));
    for (int32_t lane = 0; lane < of_all.result.journal->lanes(rank); ++lane) {
      expect_same_lane(run.result.journal->lane(rank, lane),
                       of_all.result.journal->lane(rank, lane), rank);
    }
    RC_ASSERT(run.result.ends[at].kind == of_all.result.ends[at].kind);
    const RankLog& log = run.preparation.log->ranks[at];
    const RankLog& log_of_all = of_all.preparation.log->ranks[at];
    RC_ASSERT(log.steps == log_of_all.steps);
    RC_ASSERT(log.samples_of_steps == log_of_all.samples_of_steps);
    RC_ASSERT(log.samples.size() == log_of_all.samples.size());
    for (size_t use = 0; use < log.samples.size(); ++use) {
      RC_ASSERT(cli::samples_of_rank(run, at, log.samples[use]).list() ==
                log_of_all.samples[use].samples.list());
    }
    RC_ASSERT(run.result.memory[at].size() == of_all.result.memory[at].size());
    for (const auto& [device, memory] : run.result.memory[at]) {
      RC_ASSERT(memory.peak == of_all.result.memory[at].at(device).peak);
    }
  }
}

void expect_same(const cli::Results& results, const cli::Results& of_all) {
  const cli::Prediction& prediction = results.prediction;
  RC_ASSERT(prediction.step_time == of_all.prediction.step_time);
  RC_ASSERT(prediction.samples_per_s == of_all.prediction.samples_per_s);
  RC_ASSERT(prediction.mfu == of_all.prediction.mfu);
  RC_ASSERT(results.samples_missed == of_all.samples_missed);
  RC_ASSERT(results.samples_repeated == of_all.samples_repeated);
  RC_ASSERT(results.ranks.size() == of_all.ranks.size());
  for (size_t rank = 0; rank < of_all.ranks.size(); ++rank) {
    RC_ASSERT(results.ranks[rank].memory.peak == of_all.ranks[rank].memory.peak);
    RC_ASSERT(results.ranks[rank].transfers.size() == of_all.ranks[rank].transfers.size());
  }
}

std::vector<std::string> texts_of(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  for (const Finding& finding : findings) {
    texts.push_back(fmt::format("{} {} {}", finding.code, finding.title, finding.ranks.text()));
  }
  return texts;
}

}  // namespace

TEST_CASE("a rank that runs for others does what they would have done") {
  ::setenv("RC_PARAMS", default_parameters, 0);
  const std::string given = std::getenv("RC_PARAMS");
  Distribution distribution;
  const bool held = rc::check("wide worlds", [&] {
    const WideCase wide = *wide_cases();
    distribution.draw();
    const cli::OneRun run = cli::run_once(scenario_of(text_of(wide, false)), {});
    const cli::OneRun of_all = cli::run_once(scenario_of(text_of(wide, true)), {});
    for (const Problem& problem : of_all.problems) {
      RC_LOG() << problem.message << "\n";
    }
    RC_ASSERT(run.ran == of_all.ran);
    if (!of_all.ran) {
      distribution.count("not run");
      return;
    }
    distribution.count_case();
    RC_ASSERT(of_all.preparation.options.classes == nullptr);
    const bool is_folded = run.preparation.options.classes != nullptr;
    distribution.count(is_folded ? "some run for others" : "each runs");
    distribution.count(fmt::format("{}{}", run.preparation.strategy, is_folded ? " folded" : ""));
    expect_same(run, of_all);
    expect_same(cli::measure(run), cli::measure(of_all));
    RC_ASSERT(texts_of(cli::findings_of(run, cli::World::simulated)) ==
              texts_of(cli::findings_of(of_all, cli::World::simulated)));
  });
  distribution.print(test_name);
  if (!held) {
    fmt::print("to repeat: RC_PARAMS=\"{}\" build/bin/property_tests \"{}\"\n", given, test_name);
  }
  REQUIRE(held);
  CHECK(distribution.share("some run for others") >= 0.15);
  CHECK(distribution.share("not run") <= 0.1);
}
