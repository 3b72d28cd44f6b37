// In which type the work of a replica is priced.
#include <catch2/catch.hpp>

#include "model/strategy/data_parallel/single.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE(
    "layers and loss compute in the type of activations, whether values are computed or not") {
  const Network network = small_network();
  for (const bool numerics : {false, true}) {
    TrainingPlan plan;
    plan.network = &network;
    plan.numerics = numerics;
    plan.parameter_dtype = DType::fp32;  // as mixed precision keeps them
    plan.activation_dtype = DType::bf16;
    const Trained trained = train_simulated(
        plan, 1, [](const TrainingPlan& of) { return std::make_unique<SingleDevice>(of); },
        [](int32_t, int64_t step) {
          return Batch{{2 * step, 2 * step + 1}};
        },
        1);
    size_t seen = 0;
    for (const std::string_view site :
         {replica_sites::layer_forward, replica_sites::loss_forward, replica_sites::loss_backward,
          replica_sites::layer_backward}) {
      for (const Row& row : rows_at(trained.result, 0, site, OpKind::compute)) {
        INFO(site);
        CHECK(row.dtype == DType::bf16);
        ++seen;
      }
    }
    CHECK(seen == 8);  // three layers and the loss, forth and back
  }
}
