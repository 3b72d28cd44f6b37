// GradScaler against recordings of torch's (docs/oracle.md): which steps are skipped, what becomes
// of the scale, and the parameter behind each step.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/strategy/local_model/gradient_clipping.hpp"
#include "model/strategy/local_model/loss_scale.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/local_model/scaled_step.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace loss_scale_test {
using nlohmann::json;

namespace {

json scaler_recording(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

std::vector<std::filesystem::path> scaler_recordings() {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder = LOCKSTEP_SOURCE_DIR "/tests/data/oracle/scaler";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

/// What tests/oracle/loss_scale.py gives the parameter in a micro-batch.
std::vector<float> given_of(const json& setting, int64_t step, int64_t micro_batch, int64_t rank) {
  std::vector<float> values;
  for (int64_t place = 0; place < 4; ++place) {
    values.push_back(static_cast<float>((step * 7 + micro_batch * 5 + rank * 3 + place) % 9 - 4));
  }
  const json where = {rank, micro_batch};
  const std::string key = std::to_string(step);
  if (setting["infinite"].value(key, json()) == where) {
    values[1] = std::numeric_limits<float>::infinity();
  }
  if (setting["undefined"].value(key, json()) == where) {
    values[1] = std::numeric_limits<float>::quiet_NaN();
  }
  return values;
}

/// The gradient that autograd leaves: each backward multiplies the scale, divided by the number of
/// micro-batches, with what is given.
Values gradient_of_step(const json& setting, int64_t step, int64_t rank, double scale) {
  const int64_t window = setting["window"];
  std::vector<float> sum(4, 0);
  for (int64_t micro_batch = 0; micro_batch < window; ++micro_batch) {
    const std::vector<float> given = given_of(setting, step, micro_batch, rank);
    const float factor = static_cast<float>(scale) / static_cast<float>(window);
    for (size_t place = 0; place < sum.size(); ++place) {
      sum[place] = micro_batch == 0 ? factor * given[place] : sum[place] + factor * given[place];
    }
  }
  Values values(DType::fp32, 4);
  for (int64_t place = 0; place < 4; ++place) {
    values.set(place, sum[static_cast<size_t>(place)]);
  }
  return values;
}

GradientClipping scaler_clipping(const json& setting) {
  if (setting["clip_norm"] != 0) {
    return {GradientClipping::Algorithm::norm, setting["clip_norm"]};
  }
  if (setting["clip_value"] != 0) {
    return {GradientClipping::Algorithm::value, setting["clip_value"]};
  }
  return {};
}

LossScale scaler_of(const json& setting) {
  LossScale::Options options;
  options.initial = setting["init_scale"];
  options.growth_interval = setting["growth_interval"];
  return LossScale(options);
}

/// A row of the recording, with numbers in place of their hexadecimal text.
struct ScalerRow {
  double scale = 0;
  bool skipped = false;
  double scale_after = 0;
  int64_t growth_tracker = 0;
  std::vector<double> parameter;
};

Program scaled_training(Rank& rank, const json& setting, std::vector<ScalerRow>* rows) {
  OptimizedTensor tensor;
  tensor.value = rank.allocate(Purpose::parameter, DType::fp32, 4);
  tensor.gradient = rank.allocate(Purpose::gradient, DType::fp32, 4);
  rank.write(tensor.value, Values::of(DType::fp32, {1, -2, 3, 0.5}));
  const std::vector<Slice> gradients{tensor.gradient};
  OptimizerPlan plan;
  plan.lr = 0.125;
  LossScale scale = scaler_of(setting);
  const bool is_sharded = setting["ranks"] > 1;
  for (int64_t step = 0; step < setting["steps"]; ++step) {
    ScalerRow row;
    row.scale = scale.scale_loss();
    rank.write(tensor.gradient, gradient_of_step(setting, step, rank.id(), row.scale));
    ScaledStep scaled(rank, scale, gradients, DeviceId{0},
                      is_sharded ? std::optional(world_group) : std::nullopt);
    clip_gradients(rank, scaler_clipping(setting), gradients, DeviceId{0});
    const bool may_step = co_await scaled.may_step();
    if (may_step) {
      optimizer_step(rank, plan, OptimizerKernels::of_values, {&tensor}, {});
    }
    const Ticket done = rank.event();
    co_await rank.settle(done);
    row.skipped = !may_step;
    row.scale_after = scale.scale();
    row.growth_tracker = scale.state().growth_tracker;
    const Values parameter = rank.read(tensor.value);
    for (int64_t place = 0; place < parameter.size(); ++place) {
      row.parameter.push_back(parameter.number(place));
    }
    rows->push_back(row);
  }
}

std::vector<std::vector<ScalerRow>> our_scaler(const json& setting) {
  RunOptions options;
  options.world_size = setting["ranks"];
  options.numerics = true;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(options.world_size, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  std::vector<std::vector<ScalerRow>> rows(static_cast<size_t>(options.world_size));
  sim::simulate(options, simulation, [&](Rank& rank) {
    return scaled_training(rank, setting, &rows[static_cast<size_t>(rank.id())]);
  });
  return rows;
}

bool same_number(double ours, const std::string& theirs) {
  const double number = std::strtod(theirs.c_str(), nullptr);
  return ours == number || (std::isnan(ours) && std::isnan(number));
}

}  // namespace

TEST_CASE("a scaler skips, grows and falls as torch's does") {
  for (const auto& path : scaler_recordings()) {
    DYNAMIC_SECTION(path.stem().string()) {
      const json recorded = scaler_recording(path);
      const std::vector<std::vector<ScalerRow>> ours = our_scaler(recorded["setting"]);
      REQUIRE(ours.size() == recorded["ranks"].size());
      for (size_t rank = 0; rank < ours.size(); ++rank) {
        const json& theirs = recorded["ranks"][rank];
        REQUIRE(ours[rank].size() == theirs.size());
        for (size_t step = 0; step < theirs.size(); ++step) {
          INFO("rank " << rank << ", step " << step);
          const ScalerRow& row = ours[rank][step];
          CHECK(row.scale == theirs[step]["scale"]);
          CHECK(row.skipped == theirs[step]["skipped"]);
          CHECK(row.scale_after == theirs[step]["scale_after"]);
          CHECK(row.growth_tracker == theirs[step]["growth_tracker"]);
          for (size_t place = 0; place < row.parameter.size(); ++place) {
            CHECK(same_number(row.parameter[place], theirs[step]["parameter"][place]));
          }
        }
      }
    }
  }
}

TEST_CASE("the recordings of scalers cover at least 16 settings") {
  CHECK(scaler_recordings().size() >= 16);
}

// megatron/core/optimizer/grad_scaler.py: the tracker of hysteresis is filled where the scale
// grows, and stays used up until then.
TEST_CASE("with hysteresis the scale falls from the second overflow on") {
  LossScale scale({.initial = 16, .growth_interval = 2, .hysteresis = 2, .smallest = 4});
  const auto after = [&scale](bool overflowed) {
    scale.note_step(overflowed);
    return scale.scale();
  };
  CHECK(after(true) == 16);
  CHECK(after(true) == 8);
  CHECK(after(true) == 4);
  CHECK(after(true) == 4);  // not below the smallest
  CHECK(after(false) == 4);
  CHECK(after(false) == 8);  // two steps without overflow
  CHECK(after(true) == 8);
  CHECK(after(true) == 4);
  CHECK(scale.skipped_steps() == std::vector<int64_t>{0, 1, 2, 3, 6, 7});
}

TEST_CASE("a restored scaler goes on where the other was saved") {
  LossScale first({.initial = 8, .growth_interval = 3});
  first.note_step(true);
  first.note_step(false);
  first.note_step(false);
  LossScale second({.initial = 8, .growth_interval = 3});
  second.restore(first.state());
  first.note_step(false);
  second.note_step(false);
  CHECK(first.scale() == 8);  // 4, and grown by the third step in a row
  CHECK(second.scale() == first.scale());
  CHECK(second.state() == first.state());
}

TEST_CASE("a device that stands for ranks skips their steps beside its own, and scales by less") {
  LossScale scale;
  scale.stand_for({3, {1}});
  CHECK(scale.scale_loss() == 65536.0 / 4);  // the next power of two: exact in any type
  std::vector<bool> skipped;
  for (const bool found : {true, false, false}) {
    skipped.push_back(scale.skips(found));
    scale.note_step(skipped.back());
  }
  CHECK(skipped == std::vector<bool>{true, true, false});
  CHECK(scale.scale() == 16384);
  CHECK(scale.factor() == 16384.0 / 4);
}

namespace {

Program step_with_scale(Rank& rank, Strategy* strategy, LossScale* scale) {
  co_await strategy->setup(rank, Stage::fit);
  StepOptions options;
  options.loss_factor = scale == nullptr ? 1 : scale->scale_loss();
  const Batch batch{{0, 1}};
  co_await strategy->forward(rank, batch, options);
  co_await strategy->backward(rank, options);
  UpdateOptions update;
  update.loss_scale = scale;
  co_await strategy->optimizer_step(rank, update);
  co_await strategy->teardown(rank);
}

/// One step of ddp on two ranks, whose kernels take no time but where they say so.
RunResult one_step(const Network& network, bool is_scaled) {
  TrainingPlan plan;
  plan.network = &network;
  RunOptions options;
  options.world_size = 2;
  options.network = &network;
  options.journal.lists = true;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost links(2, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &links;
  std::vector<std::unique_ptr<Strategy>> strategies;
  std::vector<LossScale> scales(2);
  for (int rank = 0; rank < 2; ++rank) {
    strategies.push_back(std::make_unique<DistributedDataParallel>(plan, DataParallelOptions()));
  }
  return sim::simulate(options, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return step_with_scale(rank, strategies[index].get(), is_scaled ? &scales[index] : nullptr);
  });
}

}  // namespace

TEST_CASE("unscaling reads and writes every gradient once, and nobody exchanges the flag in ddp") {
  const Network network = network_of_tensors({4, 2});
  const RunResult scaled = one_step(network, true);
  const std::vector<Row> unscaled =
      rows_at(scaled, 0, replica_sites::unscale_gradients, OpKind::compute);
  REQUIRE(unscaled.size() == 2);  // the flag becomes 0, then the kernel
  CHECK(unscaled.back().kernel == Kernel::unscale);
  const RowLists lists = scaled.journal->lane(0, 0).lists_of(unscaled.back());
  REQUIRE(lists.writes.size() == 3);  // the flag, and the gradients, which it changes in place
  CHECK(lists.reads.empty());
  CHECK(lists.writes[0].elements == 1);
  CHECK((lists.writes[1].bytes() + lists.writes[2].bytes()).count() == (4 + 2) * 1024 * 1024);
  CHECK(rows_at(scaled, 0, replica_sites::share_overflow, OpKind::all_reduce).empty());
  CHECK(rows_at(scaled, 0, replica_sites::find_overflow, OpKind::compute).size() == 1);
  const RunResult plain = one_step(network, false);
  CHECK(rows_at(plain, 0, replica_sites::unscale_gradients, OpKind::compute).empty());
  CHECK(rows_at(plain, 0, replica_sites::find_overflow, OpKind::compute).empty());
}

TEST_CASE("a scaler complains where there was no backward, or no gradient") {
  const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  RunOptions options;
  options.network = &network;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost links(1, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &links;
  const auto message_with = [&](bool has_scaled) {
    std::string message;
    LossScale scale;
    if (has_scaled) {
      scale.scale_loss();
    }
    sim::simulate(options, simulation, [&](Rank& rank) -> Program {
      return [](Rank& on, LossScale* of, std::string* said) -> Program {
        try {
          ScaledStep(on, *of, {}, DeviceId{0}, std::nullopt);
        } catch (const ProgramException& error) {
          *said = error.what();
        }
        co_return;
      }(rank, &scale, &message);
    });
    return message;
  };
  CHECK(message_with(false).find("Attempted unscale_ but _scale is None") != std::string::npos);
  CHECK(message_with(true).find("No inf checks were recorded") != std::string::npos);
}

}  // namespace loss_scale_test
