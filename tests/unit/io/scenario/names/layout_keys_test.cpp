// Sizes of a layout under the names that other strategies have for them.
#include <catch2/catch.hpp>
#include <string>

#include "io/scenario/load/load.hpp"

using namespace lockstep;

namespace layout_keys_test {

namespace {

/// What the error about the only argument says.
std::string remedy_of(const std::string& strategy, const std::string& key) {
  const std::string text =
      "version: 1\ntrainer: {strategy: {" + strategy + ": {" + key + ": 2}}}\n";
  const FileReader reader = [&](const std::string&,
                                size_t) -> std::variant<std::string, FileError> { return text; };
  const LoadedScenarios loaded = load_scenario_file("scenario.yaml", {}, reader);
  REQUIRE(loaded.diagnostics.size() == 1);
  CHECK(loaded.diagnostics.front().message == "`" + strategy + "` has no argument `" + key + "`");
  return loaded.diagnostics.front().remedy;
}

}  // namespace

TEST_CASE("a size under another strategy's name is the one that this strategy has") {
  CHECK(remedy_of("MegatronStrategy", "tensor_parallel_size") ==
        "did you mean `tensor_model_parallel_size`?");
  CHECK(remedy_of("MegatronStrategy", "expert_parallel_size") ==
        "did you mean `expert_model_parallel_size`?");
  CHECK(remedy_of("MegatronStrategy", "context_model_parallel_size") ==
        "did you mean `context_parallel_size`?");
  CHECK(remedy_of("MegatronStrategy", "tp") == "did you mean `tensor_model_parallel_size`?");
  CHECK(remedy_of("ModelParallelStrategy", "tensor_model_parallel_size") ==
        "did you mean `tensor_parallel_size`?");
  CHECK(remedy_of("PipelineStrategy", "num_stages") == "did you mean `stages`?");
  CHECK(remedy_of("TorchTitan", "data_parallel_size") ==
        "did you mean `data_parallel_shard_degree`?");
}

TEST_CASE("a size that the strategy has not is not mistaken for one that is spelled alike") {
  CHECK(remedy_of("MegatronStrategy", "data_parallel_size") ==
        "leave it out: it follows from the number of ranks and the other sizes");
  CHECK(remedy_of("PipelineStrategy", "data_parallel_size").starts_with("leave it out"));
  CHECK(remedy_of("ModelParallelStrategy", "pipeline_parallel_size")
            .starts_with("use PipelineStrategy"));
  CHECK(remedy_of("ModelParallelStrategy", "context_parallel_size")
            .starts_with("use MegatronStrategy"));
  CHECK(remedy_of("DDPStrategy", "tensor_parallel_size").starts_with("use ModelParallelStrategy"));
}

TEST_CASE("where a strategy says it in another way, the error says in which") {
  CHECK(remedy_of("ModelParallelStrategy", "sequence_parallel").find("SequenceParallel()") !=
        std::string::npos);
  CHECK(remedy_of("PipelineStrategy", "virtual_pipeline_model_parallel_size")
            .starts_with("write stages"));
  CHECK(remedy_of("MegatronStrategy", "num_microbatches").starts_with("write global_batch_size"));
  CHECK(remedy_of("MegatronStrategy", "use_distributed_optimizer") ==
        "it belongs into `ddp`: {ddp: {use_distributed_optimizer: ..}}");
  CHECK(remedy_of("NaiveModelParallelStrategy", "devices").starts_with("write devices of the"));
}

}  // namespace layout_keys_test
