// What PowerSGD does with matrices of one shape.
#include "model/strategy/exchange/hooks/power_sgd.hpp"

#include <catch2/catch.hpp>

#include "model/strategy/exchange/hooks/hook_sites.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace power_sgd_test {

namespace {

// Three matrices of 4 x 4, and one of 2 x 4.
Network three_alike() {
  NetworkDescription description;
  description.name = "alike";
  description.input = {4};
  description.layers = {linear(4, 4), linear(4, 4), linear(4, 4), linear(4, 2)};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the network is sound");
  return built.network;
}

Network one_matrix(int64_t columns, int64_t rows) {
  NetworkDescription description;
  description.name = "one matrix";
  description.input = {columns};
  description.layers = {
      {.kind = "Linear",
       .arguments = {{"in_features", columns}, {"out_features", rows}, {"bias", false}}}};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the network is sound");
  return built.network;
}

Trained trained_with(bool batches_alike, const Network& network, bool is_batched = false) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.optimizers.front().lr = 0.01;
  DataParallelOptions options;
  options.hook.kind = HookOptions::Kind::power_sgd;
  options.hook.has_state = true;
  options.hook.power_sgd.start_iteration = 2;
  options.hook.power_sgd.min_compression_rate = 1;
  options.hook.power_sgd.orthogonalization_epsilon = 1e-8;
  options.hook.power_sgd.batches_alike = batches_alike;
  options.hook.power_sgd.writes_values = true;
  options.hook.power_sgd.is_batched = is_batched;
  options.hook.power_sgd.takes_batches_alone = false;
  const auto make = [options](const TrainingPlan& of) {
    return std::make_unique<DistributedDataParallel>(of, options);
  };
  const Shard shard = [](int32_t rank, int64_t step) {
    Batch batch;
    for (int64_t i = 0; i < 4; ++i) {
      batch.samples.push_back((step * 4 + i) * 2 + rank);
    }
    return batch;
  };
  return train_simulated(plan, 2, make, shard, 4);
}

int64_t products_of(const Trained& trained) {
  int64_t products = 0;
  trained.result.journal->lane(0, 0).for_each([&](const Row& row) {
    products += row.row == RowKind::op && row.kind == OpKind::compute &&
                        row.kernel == Kernel::matrix_product
                    ? 1
                    : 0;
  });
  return products;
}

}  // namespace

TEST_CASE("matrices of one shape in batches take fewer kernels for the same values and calls") {
  const Network network = three_alike();
  const Trained alone = trained_with(false, network);
  const Trained batched = trained_with(true, network);
  CHECK(batched.parameters == alone.parameters);
  // Two steps of three products: P, Q and their product, of four matrices or of two batches.
  CHECK(products_of(alone) == 2 * 3 * 4);
  CHECK(products_of(batched) == 2 * 3 * 2);
  for (const std::string_view call :
       {hook_sites::reduce_rest, hook_sites::reduce_ps, hook_sites::reduce_qs}) {
    CHECK(mebibytes_at(batched.result, call, OpKind::all_reduce) ==
          mebibytes_at(alone.result, call, OpKind::all_reduce));
  }
}

// A bucket of 16 numbers is a square of 4 x 4, which is the matrix itself.
TEST_CASE("the batched hook does the same where a bucket is one square matrix") {
  const Network network = one_matrix(4, 4);
  const Trained layerwise = trained_with(false, network);
  const Trained batched = trained_with(false, network, true);
  CHECK(batched.parameters == layerwise.parameters);
  CHECK(products_of(batched) == 2 * 3);
}

// 5 x 3 and 3 x 5 numbers are 15: a square of 4 x 4 with one zero, P and Q of 4 numbers each.
TEST_CASE("the batched hook sends two columns of the smallest square, whatever the shapes are") {
  for (const auto& [columns, rows] : {std::pair<int64_t, int64_t>{5, 3}, {3, 5}}) {
    const Network network = one_matrix(columns, rows);
    const Trained batched = trained_with(false, network, true);
    for (const std::string_view call : {hook_sites::reduce_ps, hook_sites::reduce_qs}) {
      CHECK(mebibytes_at(batched.result, call, OpKind::all_reduce) ==
            std::vector<double>(2, 4 * 4 / 1048576.0));
    }
    CHECK(mebibytes_at(batched.result, hook_sites::reduce_rest, OpKind::all_reduce).empty());
    CHECK(batched.parameters.front() == batched.parameters.back());
  }
}

}  // namespace power_sgd_test
