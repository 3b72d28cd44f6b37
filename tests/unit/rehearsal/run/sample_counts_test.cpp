// What is counted of ranks that take turns is what a list of their samples gives.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "properties/invariants/every_sample_once.hpp"
#include "rehearsal/run/configuration.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

namespace lockstep::cli::sample_counts_test {
namespace {

OneRun trained(int samples, int nodes, const std::string& loader, const std::string& trainer) {
  return run_once(
      test::scenario_of(fmt::format(
          "version: 1\ncluster: {{preset: dgx-a100, nodes: {}}}\nmodel: {{preset: mlp}}\n"
          "data: {{train: {{samples: {}, batch_size: 3{}}}}}\n"
          "trainer: {{accelerator: gpu, devices: 2, num_nodes: {}, strategy: ddp, max_epochs: "
          "1{}}}\n"
          "verify: {{numerics: false}}\n",
          nodes, samples, loader, nodes, trainer)),
      {});
}

SampleCounts listed_counts(const OneRun& run, int samples) {
  std::vector<RankSamples> taken;
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const SampleUse& use : ranks[rank].samples) {
      taken.push_back(
          {static_cast<int32_t>(rank), 0, samples_of_rank(run, rank, use.samples).list()});
    }
  }
  return count_samples(taken, 0, samples);
}

TEST_CASE("samples of ranks that take turns are counted as if they were listed") {
  for (const int nodes : {1, 4}) {
    for (const int samples : {7, 8, 24, 25, 47, 53}) {
      for (const char* loader : {"", ", drop_last: true", ", sampler: unrepeated"}) {
        for (const char* trainer : {"", ", limit_train_batches: 1"}) {
          const OneRun run = trained(samples, nodes, loader, trainer);
          REQUIRE(run.ran);
          const std::optional<SampleCounts> counts = counts_of_turns(run, "train", 0, samples);
          if (run.result.hung || !counts) {
            continue;  // a rank without samples has no turns
          }
          INFO(samples << " samples on " << nodes << " nodes" << loader << trainer);
          const SampleCounts listed = listed_counts(run, samples);
          CHECK(counts->repeated == listed.repeated);
          CHECK(counts->missed == listed.missed);
        }
      }
    }
  }
}

TEST_CASE("padding repeats samples, and a limit leaves some out") {
  const std::optional<SampleCounts> padded =
      counts_of_turns(trained(25, 4, "", ""), "train", 0, 25);
  REQUIRE(padded);
  CHECK(padded->repeated == 7);  // 8 ranks take 4 each
  CHECK(padded->missed == 0);
  const std::optional<SampleCounts> limited =
      counts_of_turns(trained(25, 4, "", ", limit_train_batches: 1"), "train", 0, 25);
  REQUIRE(limited);
  CHECK(limited->repeated == 0);
  CHECK(limited->missed == 1);  // 8 ranks take one batch of 3
}

TEST_CASE("a rank runs for those that do the same on its node and on another") {
  const OneRun run = trained(24, 4, "", "");
  REQUIRE(run.preparation.options.classes != nullptr);
  // Rank 0; rank 1, which shares a PCIe switch with it; one rank of the six on other nodes.
  CHECK(run.preparation.options.classes->size() == 3);
  CHECK(run.preparation.options.classes->of(7) == 2);
  CHECK(trained(24, 2, "", "").preparation.options.classes == nullptr);
}

TEST_CASE("ranks whose values differ a little, or late, are not the same") {
  const auto classes = [](const std::string& program, const std::string& values) {
    const std::string text =
        "version: 1\ncluster: {preset: dgx-a100, nodes: 4}\nmodel: {preset: mlp}\n"
        "data: {train: {samples: 24, batch_size: 3" +
        values +
        "}}\ntrainer: {accelerator: gpu, devices: 2, num_nodes: 4, strategy: ddp, max_epochs: 1}\n"
        "verify: {numerics: false}\nprogram: {on_train_batch_end: [" +
        program + "]}\n";
    const OneRun run = run_once(test::scenario_of(text), {});
    REQUIRE(run.ran);
    return run.preparation.options.classes != nullptr;
  };
  CHECK(classes("{let: {x: 1 + rank * 0}}", ""));
  CHECK_FALSE(classes("{let: {x: 1 + rank / 1e12}}", ""));
  CHECK_FALSE(
      classes("{let: {x: '[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, rank]'}}", ""));
  CHECK_FALSE(classes("barrier", ", values: {score: sample}"));
}

}  // namespace
}  // namespace lockstep::cli::sample_counts_test
