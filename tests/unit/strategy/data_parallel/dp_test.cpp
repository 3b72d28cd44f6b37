#include "model/strategy/data_parallel/dp.hpp"

#include <catch2/catch.hpp>

#include "model/strategy/data_parallel/single.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace dp_test {

namespace {

using Lengths = std::vector<int64_t>;

TrainingPlan exact_plan(const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.optimizers.front().lr = 0.125;
  return plan;
}

Batch first_samples(int64_t count) {
  Batch batch;
  for (int64_t sample = 0; sample < count; ++sample) {
    batch.samples.push_back(sample);
  }
  return batch;
}

Trained train_dp(const TrainingPlan& plan, int32_t devices, int64_t samples, int64_t steps) {
  return train_simulated(
      plan, 1, [](const TrainingPlan& each) { return std::make_unique<DataParallel>(each); },
      [samples](int32_t, int64_t) { return first_samples(samples); }, steps, devices);
}

}  // namespace

TEST_CASE("dp cuts a batch as torch.chunk does") {
  CHECK(chunk_lengths(5, 4) == Lengths{2, 2, 1});
  CHECK(chunk_lengths(6, 4) == Lengths{2, 2, 2});
  CHECK(chunk_lengths(10, 4) == Lengths{3, 3, 3, 1});
  CHECK(chunk_lengths(64, 4) == Lengths{16, 16, 16, 16});
  CHECK(chunk_lengths(9, 8) == Lengths{2, 2, 2, 2, 1});
}

TEST_CASE("dp with equal chunks is one device on the whole batch, bit for bit") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  const Trained alone = train_simulated(
      plan, 1, [](const TrainingPlan& each) { return std::make_unique<SingleDevice>(each); },
      [](int32_t, int64_t) { return first_samples(8); }, 1);
  for (const int32_t devices : {1, 2, 4}) {
    CHECK(train_dp(plan, devices, 8, 1).parameters == alone.parameters);
  }
}

TEST_CASE("dp with a short last chunk weighs chunks, not samples") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  const Trained alone = train_simulated(
      plan, 1, [](const TrainingPlan& each) { return std::make_unique<SingleDevice>(each); },
      [](int32_t, int64_t) { return first_samples(3); }, 1);
  CHECK_FALSE(train_dp(plan, 2, 3, 1).parameters == alone.parameters);
}

TEST_CASE("dp sends the model to every other device at every forward and the gradients back") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  const Trained trained = train_dp(plan, 4, 8, 1);
  const Bytes parameters = Bytes(4) * network.parameter_elements();
  Bytes to_replicas{};
  Bytes to_root{};
  trained.result.journal->lane(0, 0).for_each([&](const Row& row) {
    if (row.row == RowKind::op && row.kind == OpKind::copy) {
      if (row.site == site_id("dp: parameters to a replica")) {
        to_replicas += Bytes(row.bytes);
      } else if (row.site == site_id("dp: gradients to device 0")) {
        to_root += Bytes(row.bytes);
      }
    }
  });
  CHECK(to_replicas == parameters * 3);
  CHECK(to_root == parameters * 3);
}

TEST_CASE("dp sends chunks that close at 10 MiB, there and back") {
  const Network network = network_of_tensors({0.5, 10, 10, 10, 4, 0.25});
  TrainingPlan plan;
  plan.network = &network;
  const Trained trained = train_dp(plan, 2, 8, 1);
  // By hand: 0.5 + 10 closes, 10 closes, 10 closes, 4 + 0.25 is left over.
  const std::vector<double> chunks = {10.5, 10, 10, 4.25};
  CHECK(mebibytes_at(trained.result, "dp: parameters to a replica", OpKind::copy) == chunks);
  CHECK(mebibytes_at(trained.result, "dp: gradients to device 0", OpKind::copy) == chunks);
}

namespace {

Transfer transfer_of(const Trained& trained, const std::string& label) {
  for (const Transfer& transfer : trained.strategies[0]->transfers_per_step()) {
    if (transfer.label == label) {
      return transfer;
    }
  }
  return {label, 0, {}};
}

Bytes copied_at(const Trained& trained, std::string_view step) {
  Bytes bytes{};
  for (const Row& row : rows_at(trained.result, 0, step, OpKind::copy)) {
    bytes += Bytes(row.bytes);
  }
  return bytes;
}

}  // namespace

TEST_CASE("dp's transfers are the copies of one step: what is labelled is what was submitted") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  // 8 samples of 4 inputs and 2 targets, fp32, on 4 devices.
  const Trained trained = train_dp(plan, 4, 8, 1);
  CHECK(transfer_of(trained, "data_to_devices").count == 4);
  CHECK(transfer_of(trained, "data_to_devices").bytes == Bytes(8 * (4 + 2) * 4));
  CHECK(transfer_of(trained, "data_to_devices").bytes == copied_at(trained, "batch to device"));
  const Bytes parameters = Bytes(4) * network.parameter_elements();
  CHECK(transfer_of(trained, "model_to_devices").count == 3);
  CHECK(transfer_of(trained, "model_to_devices").bytes == parameters * 3);
  CHECK(transfer_of(trained, "gradients_to_root").bytes == parameters * 3);
  CHECK(transfer_of(trained, "outputs_to_root").bytes == Bytes(3 * 4));
  CHECK(transfer_of(trained, "output_gradients_to_devices").bytes == Bytes(3 * 4));
  CHECK(transfer_of(trained, "buffers_to_devices").count == 0);  // the perceptron has none
  // Model, data and outputs; on one device only the data travel.
  CHECK(transfer_of(trained, "counted_by_guides").count == 3);
  CHECK(transfer_of(train_dp(plan, 1, 8, 1), "counted_by_guides").count == 1);
  // Of the last step alone.
  CHECK(transfer_of(train_dp(plan, 4, 8, 3), "model_to_devices").count == 3);
}

TEST_CASE("dp counts the micro-batches of an optimizer step together") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  const Trained trained = train_simulated(
      plan, 1, [](const TrainingPlan& each) { return std::make_unique<DataParallel>(each); },
      [](int32_t, int64_t) { return first_samples(8); }, 4, 2,
      [](int32_t, int64_t step) {
        StepOptions options;
        options.synchronise = step % 2 == 1;
        return options;
      });
  CHECK(transfer_of(trained, "model_to_devices").count == 2);
  CHECK(transfer_of(trained, "data_to_devices").count == 4);
}

TEST_CASE("an unused parameter gets a gradient of zeros under dp, and None on one device") {
  const Network network = small_network(4);
  TrainingPlan plan = exact_plan(network);
  plan.optimizers.front().weight_decay = 1;
  const auto after = [&](int32_t devices, int64_t steps) {
    const Trained trained = train_simulated(
        plan, 1, [](const TrainingPlan& each) { return std::make_unique<DataParallel>(each); },
        [](int32_t, int64_t) { return first_samples(8); }, steps, devices,
        [](int32_t, int64_t) {
          StepOptions options;
          options.skipped_layers = {0};
          return options;
        });
    return trained.parameters[0];
  };
  const std::vector<Values> before = after(2, 0);
  CHECK(after(1, 1)[0] == before[0]);
  // One step of SGD with lr 1/8 and decay 1 on a gradient of 0: w - w / 8.
  const std::vector<Values> decayed = after(2, 1);
  for (int64_t i = 0; i < before[0].size(); ++i) {
    CHECK(decayed[0].number(i) == before[0].number(i) * 7 / 8);
  }
}

}  // namespace dp_test
