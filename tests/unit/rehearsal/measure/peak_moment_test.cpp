// When a rank holds its most.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"
#include "rehearsal/measure/peak_moment.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::peak_moment_test {
namespace {

using Phase = PeakMoment::Phase;

Row operation(std::string_view site, OpKind kind = OpKind::compute, Kernel kernel = Kernel::timed) {
  Row row;
  row.kind = kind;
  row.kernel = kernel;
  row.site = site_id(site);
  return row;
}

Row layer_forward() { return operation(replica_sites::layer_forward); }
Row layer_backward() { return operation(replica_sites::layer_backward); }
Row recomputed() { return operation(replica_sites::recompute); }
Row batch() { return operation(replica_sites::bring_batch, OpKind::copy); }
Row update() { return operation("update", OpKind::compute, Kernel::adam_step); }
Row exchange(OpKind kind) { return operation("exchange", kind); }

Row mark(ChoiceKind kind) {
  Row row;
  row.row = RowKind::choice;
  row.tag = static_cast<int32_t>(kind);
  return row;
}

constexpr int32_t largest = 5;
Row allocation() {
  Row row;
  row.row = RowKind::allocate;
  row.tag = largest;
  return row;
}

std::string moment_in(const std::vector<Row>& rows,
                      const std::vector<RepeatedRows>& repeated = {}) {
  Journal journal(1, {});
  for (const Row& row : rows) {
    journal.append(0, LaneId{0}, row);
  }
  if (!repeated.empty()) {
    journal.repeated = ByRank<std::vector<RepeatedRows>>(1);
    journal.repeated[0] = repeated;
  }
  const auto moment = moment_of(journal, 0, BufferId{largest}, steps_of(journal, 0));
  return moment ? text_of(*moment) : "unknown";
}

TEST_CASE("what an operation computes says when its memory was allocated") {
  CHECK(moment_in({batch(), allocation(), layer_forward(), layer_backward()}) ==
        "in the forward of step 1");
  CHECK(moment_in({batch(), layer_forward(), allocation(), layer_backward()}) ==
        "in the backward of step 1");
  CHECK(moment_in({batch(), layer_forward(), allocation(), recomputed(), layer_backward()}) ==
        "in the backward of step 1");
  CHECK(moment_in({batch(), layer_forward(), layer_backward(), allocation(), update()}) ==
        "in optimizer.step() of step 1");
}

TEST_CASE("memory of a collective belongs to what goes on around it") {
  const Row gather = exchange(OpKind::all_gather);
  const Row reduce = exchange(OpKind::reduce_scatter);
  const Row step = mark(ChoiceKind::step);
  CHECK(moment_in({batch(), allocation(), gather, layer_forward(), layer_backward()}) ==
        "in the forward of step 1");
  CHECK(moment_in({batch(), layer_forward(), allocation(), gather, layer_backward()}) ==
        "in the backward of step 1");
  CHECK(moment_in({batch(), layer_forward(), layer_backward(), allocation(), reduce, update()}) ==
        "in the backward of step 1");
  // The next batch of a window: gradients are reduced, or the first unit is gathered for it.
  CHECK(moment_in({batch(), layer_forward(), layer_backward(), allocation(), reduce, batch(),
                   layer_forward()}) == "in the backward of step 1");
  CHECK(moment_in({batch(), layer_forward(), layer_backward(), allocation(), gather,
                   layer_forward(), layer_backward()}) == "in the forward of step 1");
  // Updated parts are gathered before the trainer counts the step.
  CHECK(moment_in({batch(), layer_forward(), layer_backward(), update(), allocation(), gather, step,
                   batch()}) == "in optimizer.step() of step 1");
  CHECK(moment_in({batch(), layer_forward(), layer_backward(), update(), step, allocation(), gather,
                   layer_forward(), layer_backward()}) == "in the forward of step 2");
}

TEST_CASE("what comes before the first batch is set-up, and a gathered state_dict is known") {
  const Row gather = operation(fsdp_sites::gather_state, OpKind::all_gather);
  CHECK(moment_in({allocation(), exchange(OpKind::broadcast), batch(), layer_forward()}) ==
        "while the model is set up");
  CHECK(moment_in({batch(), layer_forward(), layer_backward(), update(), mark(ChoiceKind::step),
                   allocation(), gather}) == "while the state_dict is gathered after step 1");
}

TEST_CASE("one rank evaluates where no backward comes before the next batch") {
  const std::vector<Row> evaluated = {batch(), layer_forward(), allocation(),    layer_forward(),
                                      batch(), layer_forward(), layer_backward()};
  CHECK(moment_in(evaluated) == "in an evaluation before the first step");
  CHECK(moment_in({allocation(), batch(), layer_forward(), batch(), layer_forward(),
                   layer_backward()}) == "in an evaluation before the first step");
  CHECK(moment_in({allocation(), batch(), layer_forward(), layer_backward()}) ==
        "in the forward of step 1");
}

TEST_CASE("steps that were left out before it are counted, and those behind it are not") {
  std::vector<Row> rows;
  for (int step = 0; step < 4; ++step) {  // four rows for each
    const std::vector<Row> next = {batch(), layer_forward(), layer_backward(), update()};
    rows.insert(rows.end(), next.begin(), next.end());
  }
  rows.insert(rows.begin() + 13, allocation());
  const RepeatedRows before{8, 4, 8, 10, 1_us, 1_us, 0, 0};    // step 2, ten times, behind it
  const RepeatedRows behind{17, 8, 12, 20, 1_us, 1_us, 1, 1};  // step 3, at the end
  CHECK(moment_in(rows) == "in the forward of step 4");
  CHECK(moment_in(rows, {before, behind}) == "in the forward of step 14");
}

TEST_CASE("a buffer that the main thread did not allocate has no moment") {
  CHECK(moment_in({batch(), layer_forward()}) == "unknown");
  Journal journal(1, {});
  CHECK_FALSE(moment_of(journal, 0, no_buffer, {}));
}

TEST_CASE("a table knows the first buffer with which a device held most") {
  BufferTable table(false, Bytes(100));
  const auto allocate = [&table](int64_t elements) {
    return table.allocate({DType::uint8, Purpose::workspace, DeviceId{0}, elements});
  };
  allocate(10);
  const BufferId most = allocate(30);
  table.release(most);
  allocate(30);  // as much again
  allocate(0);
  CHECK(table.memory().at(DeviceId{0}).peak == Bytes(40));
  CHECK(table.memory().at(DeviceId{0}).peak_buffer == most);
}

// Runs of a scenario

RankResults rank_of(const std::string& text, size_t rank, bool every_step) {
  const std::string all = every_step ? "verify: {all_steps: true, all_ranks: true}\n" : "";
  Collected collected = collect(test::source_of_text("version: 1\n" + all + text));
  REQUIRE(collected.diagnostics.empty());
  RehearseRequest request;
  request.explore = false;
  rehearse_all(collected.jobs, request, Judges::quantities, 1);
  const Results& results = collected.jobs.front().result.results;
  REQUIRE(results.ranks.size() > rank);
  CHECK((results.prediction.simulated_steps < results.prediction.steps) != every_step);
  return results.ranks[rank];
}

std::string text_of_moment(const std::optional<PeakMoment>& moment) {
  return moment ? text_of(*moment) : "unknown";
}

// n = 2 (512 x 512 + 512) = 525,312 parameters of fp32; Adam keeps two moments of each.
constexpr int64_t parameters = 525'312;
std::string tower(const std::string& trainer, const std::string& more = "") {
  return fmt::format(
      "cluster: {{preset: dgx-a100, nodes: 1}}\n"
      "model: {{input: [512], layers: [{{Linear: [512, 512]}}, {{Linear: [512, 512]}}], "
      "loss: MSELoss}}\n"
      "optimizer: {{Adam: {{lr: 0.001}}}}\n"
      "trainer: {{accelerator: gpu, devices: 2, max_epochs: 2, num_sanity_val_steps: 0, {}}}\n{}",
      trainer, more);
}

// Rank 0 alone has all of it in host memory: weights and moments, 12 bytes per parameter. Its two
// batches of 4 x 512 inputs and targets are gone or stay beside it.
TEST_CASE("a full checkpoint of fsdp is rank 0's most in host memory") {
  const std::string text =
      tower("strategy: fsdp, limit_val_batches: 0, enable_checkpointing: false",
            "data: {train: {samples: 400, batch_size: 4}}\n"
            "program: {on_train_epoch_end: [{if: epoch == 1, then: [save_checkpoint]}]}\n");
  for (const bool every_step : {false, true}) {
    const RankResults first = rank_of(text, 0, every_step);
    CHECK(text_of_moment(first.host_peak_at) == "while the state_dict is gathered after step 100");
    CHECK(first.host_peak >= Bytes(12 * parameters));
    CHECK(first.host_peak <= Bytes(12 * parameters + 4 * 4 * 1024 * 4));
    const RankResults second = rank_of(text, 1, every_step);
    CHECK(second.host_peak < Bytes(100'000));
  }
}

// A validation keeps nothing for a backward, and holds 64 times the rows of a training batch: two
// activations of 8192 x 512 x 4 = 16 MiB at a time, against 10.5 MB of all gradients and states.
TEST_CASE("a validation of large batches is when ddp holds most") {
  const std::string text = tower("strategy: ddp",
                                 "data: {train: {samples: 400, batch_size: 4}, "
                                 "val: {samples: 16384, batch_size: 8192}}\n");
  for (const bool every_step : {false, true}) {
    CHECK(text_of_moment(rank_of(text, 0, every_step).peak_at) == "in an evaluation after step 50");
  }
}

// Weights, buckets and all gradients are there when the first backward ends. Lightning's closure
// runs training_step before zero_grad, so that the second forward finds the gradients still there,
// and adds activations to them.
TEST_CASE("ddp with plain SGD holds most while activations join the gradients of the step before") {
  std::string text = tower("strategy: ddp, limit_val_batches: 0",
                           "data: {train: {samples: 400, batch_size: 4}}\n");
  text.replace(text.find("Adam: "), 6, "SGD: ");
  for (const bool every_step : {false, true}) {
    const RankResults rank = rank_of(text, 1, every_step);
    CHECK(text_of_moment(rank.peak_at) == "in the forward of step 2");
    CHECK(rank.memory.peak_by_purpose[static_cast<size_t>(Purpose::gradient)] ==
          Bytes(4 * parameters));
  }
}

}  // namespace
}  // namespace lockstep::cli::peak_moment_test
