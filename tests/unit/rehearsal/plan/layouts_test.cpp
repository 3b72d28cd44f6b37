#include "rehearsal/plan/layouts.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "rehearsal/plan/plan_search.hpp"

namespace lockstep::cli {

namespace {

LayoutTask sixteen_ranks() {
  LayoutTask task;
  task.ranks = 16;
  task.ranks_per_node = 8;
  task.samples = 64;
  task.blocks = 32;
  task.parameters = 1'000'000;
  task.cuts_layers = true;
  return task;
}

const Layout* described(const std::vector<Layout>& layouts, const std::string& description) {
  const auto found = std::ranges::find(layouts, description, &Layout::description);
  return found == layouts.end() ? nullptr : &*found;
}

double gigabytes(const Layout& layout) {
  return static_cast<double>(layout.model_states.count()) * 1e-9;
}

SweepRow row_of(const std::string& verdict, double speed) {
  SweepRow row;
  row.verdict = verdict;
  row.message = verdict;
  if (speed > 0) {
    row.figures.emplace_back("throughput", Value(speed));
  }
  return row;
}

}  // namespace

TEST_CASE("every layout trains the samples of a step") {
  for (const int64_t samples : {16, 48, 64, 1000}) {
    LayoutTask task = sixteen_ranks();
    task.samples = samples;
    for (const Layout& layout : layouts_of(task)) {
      INFO(layout.description << " " << layout.micro_batch);
      CHECK(layout.replicas * layout.batch_size * layout.accumulated == samples);
      CHECK(layout.batch_size % layout.micro_batch == 0);
    }
  }
}

TEST_CASE("layouts are products of ranks, each there once") {
  const LayoutTask task = sixteen_ranks();
  const std::vector<Layout> layouts = layouts_of(task);
  std::set<std::vector<std::string>> settings;
  for (const Layout& layout : layouts) {
    CHECK(settings.insert(layout.settings(task)).second);
  }
  REQUIRE(described(layouts, "tensor 4 x FSDP2 4") != nullptr);
  REQUIRE(described(layouts, "pipeline 4 x tensor 2 x data 2, 1F1B") != nullptr);
  CHECK(described(layouts, "pipeline 4 x tensor 2 x data 2, 1F1B")->replicas == 2);
  CHECK(described(layouts, "FSDP HYBRID_SHARD") != nullptr);
  REQUIRE(described(layouts, "FSDP2") != nullptr);
  CHECK(described(layouts, "FSDP2")->replicas == 16);
  CHECK(described(layouts, "FSDP2")->model_states == described(layouts, "FSDP")->model_states);
  CHECK(described(layouts, "tensor 16") == nullptr);  // beyond a node
}

TEST_CASE("what a model or a machine cannot have is left out") {
  LayoutTask task = sixteen_ranks();
  task.cuts_layers = false;
  task.blocks = 0;
  task.ranks_per_node = 16;
  task.marks_checkpoints = false;
  for (const Layout& layout : layouts_of(task)) {
    CHECK(layout.description.find("tensor") == std::string::npos);
    CHECK(layout.description.find("pipeline") == std::string::npos);
    CHECK(layout.description != "FSDP HYBRID_SHARD");  // one node
    CHECK_FALSE(layout.checkpoints);
    CHECK(layout.settings(task).size() == 3);
  }
  task.samples = 24;  // 16 ranks do not divide them
  CHECK(layouts_of(task).empty());
}

// Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
// figure 1: 7.5 B parameters, 64 ranks, Adam in mixed precision: 120, 31.4, 16.6 and 1.9 GB.
TEST_CASE("model states are those of the ZeRO paper") {
  LayoutTask task;
  task.ranks = 64;
  task.ranks_per_node = 64;
  task.samples = 64;
  task.parameters = 7'500'000'000;
  task.parameter_bytes = 2_B;
  task.state_bytes = 12_B;
  const std::vector<Layout> layouts = layouts_of(task);
  CHECK(gigabytes(*described(layouts, "ddp")) == Approx(120).margin(0.05));
  CHECK(gigabytes(*described(layouts, "ZeRO-1")) == Approx(31.4).margin(0.05));
  CHECK(gigabytes(*described(layouts, "ZeRO-2")) == Approx(16.6).margin(0.05));
  CHECK(gigabytes(*described(layouts, "ZeRO-3")) == Approx(1.9).margin(0.05));
}

TEST_CASE("a search goes from large micro-batches to small ones and stops where two fit") {
  LayoutTask task = sixteen_ranks();
  task.samples = 16 * 16;
  task.device_memory = Bytes(1'000'000'000);
  std::vector<Layout> layouts;
  for (const Layout& layout : layouts_of(task)) {
    if (layout.description == "ddp" && !layout.checkpoints) {
      layouts.push_back(layout);  // 16, 8, 4, 2 and 1 samples
    }
  }
  REQUIRE(layouts.size() == 5);
  std::vector<int64_t> tried;
  const auto run = [&](const std::vector<size_t>& chosen) {
    std::vector<std::optional<SweepRow>> rows;
    for (const size_t index : chosen) {
      const int64_t micro = layouts[index].micro_batch;
      tried.push_back(micro);
      rows.emplace_back(micro > 8 ? row_of("out_of_memory", 0)
                                  : row_of("ok", static_cast<double>(100 - micro)));
    }
    return rows;
  };
  const PlanResult result = search_plan(task, layouts, run);
  CHECK(tried == std::vector<int64_t>{16, 8, 4});
  CHECK(result.out_of_memory == 1);
  CHECK(result.passed_over == 2);
  REQUIRE(result.best.size() == 2);
  CHECK(result.best.front().layout.micro_batch == 4);
}

TEST_CASE("a search leaves out what cannot fit, and counts what it had no time for") {
  LayoutTask task = sixteen_ranks();
  task.device_memory = 1_B;
  const std::vector<Layout> layouts = layouts_of(task);
  const PlanResult large = search_plan(task, layouts, [](const std::vector<size_t>&) {
    FAIL("nothing is simulated");
    return std::vector<std::optional<SweepRow>>();
  });
  CHECK(large.too_large == large.layouts);
  task.device_memory = {};
  const PlanResult late = search_plan(task, layouts, [](const std::vector<size_t>& chosen) {
    return std::vector<std::optional<SweepRow>>(chosen.size());
  });
  CHECK(late.left == late.layouts);
  CHECK(late.best.empty());
}

TEST_CASE("each reason for which layouts are refused is reported once") {
  LayoutTask task = sixteen_ranks();
  const std::vector<Layout> layouts = layouts_of(task);
  const PlanResult result = search_plan(task, layouts, [](const std::vector<size_t>& chosen) {
    std::vector<std::optional<SweepRow>> rows;
    for (size_t i = 0; i < chosen.size(); ++i) {
      rows.emplace_back(row_of("refused", 0));
    }
    return rows;
  });
  CHECK(result.failed == result.layouts);
  CHECK(result.refused.size() == 1);
}

}  // namespace lockstep::cli
