// Sizes of ModelParallelStrategy that do not make up the ranks: the place and what to write.
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace mesh_remedies_test {

namespace {

/// On four ranks of one node.
Problem stop_of(const std::string& sizes) {
  const Preparation preparation = prepare(
      scenario_of("version: 1\nmodel: {input: [4], loss: MSELoss, layers: [{Linear: [4, 4]}]}\n"
                  "data: {train: {samples: 16, batch_size: 4}}\ntrainer: {accelerator: gpu, "
                  "devices: 4, max_steps: 1, strategy: {ModelParallelStrategy: {\n  " +
                  sizes + "}}}\n"),
      standard_strategies());
  for (const Problem& problem : preparation.problems) {
    if (problem.stops()) {
      CHECK(problem.place.line == 5);
      return problem;
    }
  }
  return {Problem::Kind::note, {}, ""};
}

}  // namespace

TEST_CASE("the size that is given stays, and the error says the other one") {
  CHECK(stop_of("data_parallel_size: 2").remedy == "write tensor_parallel_size: 2 beside it");
  CHECK(stop_of("tensor_parallel_size: 2").remedy == "write data_parallel_size: 2");
  CHECK(stop_of("data_parallel_size: 3, tensor_parallel_size: 2").remedy ==
        "write data_parallel_size: 2");
  CHECK(stop_of("data_parallel_size: 2, tensor_parallel_size: 2").message.empty());
}

TEST_CASE("a size that does not divide the ranks is named with those that do") {
  CHECK(stop_of("tensor_parallel_size: 3").remedy ==
        "choose sizes whose product is 4: tensor_parallel_size, for example, can be 1, 2 or 4");
  CHECK(stop_of("data_parallel_size: 3").remedy ==
        "choose sizes whose product is 4: data_parallel_size, for example, can be 1, 2 or 4");
  CHECK(stop_of("data_parallel_size: 4, tensor_parallel_size: 1, fully_shard: {mesh: [3, 2]}")
            .remedy == "write [replicas, shards], whose product is 4");
}

}  // namespace mesh_remedies_test
