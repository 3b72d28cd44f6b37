#include "rehearsal/plan/layouts.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "model/strategy/pipeline/schedule.hpp"
#include "rehearsal/plan/plan_search.hpp"

namespace lockstep::cli::layouts_test {

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
    CHECK(layout.recompute == Recompute::none);
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
    if (layout.description == "ddp" && layout.recompute == Recompute::none) {
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
  const PlanResult result = search_plan(task, layouts, {}, run);
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
  const PlanResult large = search_plan(task, layouts, {}, [](const std::vector<size_t>&) {
    FAIL("nothing is simulated");
    return std::vector<std::optional<SweepRow>>();
  });
  CHECK(large.too_large == large.layouts);
  task.device_memory = {};
  const PlanResult late = search_plan(task, layouts, {}, [](const std::vector<size_t>& chosen) {
    return std::vector<std::optional<SweepRow>>(chosen.size());
  });
  CHECK(late.left == late.layouts);
  CHECK(late.best.empty());
}

TEST_CASE("each reason for which layouts are refused is reported once") {
  LayoutTask task = sixteen_ranks();
  const std::vector<Layout> layouts = layouts_of(task);
  const PlanResult result = search_plan(task, layouts, {}, [](const std::vector<size_t>& chosen) {
    std::vector<std::optional<SweepRow>> rows;
    for (size_t i = 0; i < chosen.size(); ++i) {
      rows.emplace_back(row_of("refused", 0));
    }
    return rows;
  });
  CHECK(result.failed == result.layouts);
  CHECK(result.refused.size() == 1);
}

// 4 micro-batches of 10 s forward and backward on 4 ranks of 8 blocks: a rank has 10 s / 4 of each,
// and the last one waits for three others: (4 + 3) x 2.5 s (Narayanan et al. 2021).
TEST_CASE("no schedule is faster than its bubble lets it be") {
  LayoutTask task;
  task.ranks = 4;
  task.ranks_per_node = 4;
  task.samples = 4;
  task.blocks = 8;
  task.parameters = 1000;
  task.bounds.times = [](int64_t micro_batch, int32_t tensor, int32_t) {
    return LeastTimes{10_s * micro_batch / tensor, 0_s, 3_s * micro_batch / tensor};
  };
  task.bounds.kept[1].of_blocks[0] = 800_MiB;
  const std::vector<Layout> layouts = layouts_of(task);
  const auto of = [&](const std::string& description, Recompute recompute) {
    const auto found = std::ranges::find_if(layouts, [&](const Layout& each) {
      return each.description == description && each.recompute == recompute &&
             each.micro_batch == 1;
    });
    REQUIRE(found != layouts.end());
    return *found;
  };
  CHECK(of("pipeline 4, 1F1B", Recompute::none).least_time == 17500_ms);
  // With two stages for each rank it waits half as long.
  CHECK(of("pipeline 4, Interleaved1F1B", Recompute::none).least_time == 13750_ms);
  CHECK(of("ddp", Recompute::none).least_time == 10_s);
  CHECK(of("ddp", Recompute::full).least_time == 13_s);
  // The first rank keeps four micro-batches of a quarter of the blocks.
  CHECK(of("pipeline 4, 1F1B", Recompute::none).least_memory >= 800_MiB);
  CHECK(of("pipeline 4, 1F1B", Recompute::none).least_memory < 801_MiB);
}

TEST_CASE("the first rank keeps what its schedule has in flight") {
  LayoutTask task;
  task.ranks = 4;
  task.ranks_per_node = 4;
  task.samples = 16;
  task.blocks = 8;
  task.bounds.kept[1].of_blocks[0] = 800_MiB;
  using Kind = PipelineScheduleKind;
  for (const Layout& layout : layouts_of(task)) {
    if (layout.stages == 1 || layout.recompute != Recompute::none) {
      continue;
    }
    const Kind kind =
        layout.stages_per_rank == 1 ? Kind::one_forward_one_backward : Kind::interleaved;
    const auto count = static_cast<int32_t>(layout.batch_size / layout.micro_batch);
    const PipelineSchedule schedule =
        make_pipeline_schedule(kind, {layout.stages, layout.stages_per_rank, count});
    const int64_t of_stage = 800 / (int64_t{layout.stages} * layout.stages_per_rank);
    INFO(layout.description << ", " << count << " micro-batches");
    CHECK(layout.least_memory ==
          1_MiB * (of_stage * layout.micro_batch * most_in_flight(schedule, 0)));
  }
}

TEST_CASE("of the layouts that cost little to simulate the most promising comes first") {
  LayoutTask task;
  task.samples = 100;
  std::vector<Layout> layouts(3);
  for (size_t i = 0; i < layouts.size(); ++i) {
    layouts[i].family = static_cast<int64_t>(i);
  }
  layouts[0].least_time = 1_s;
  layouts[0].simulated_blocks = 1'000'000;
  layouts[1].least_time = 3_s;
  layouts[2].least_time = 2_s;
  std::vector<size_t> tried;
  search_plan(task, layouts, {.top = 3, .at_once = 1}, [&](const std::vector<size_t>& chosen) {
    tried.push_back(chosen.front());
    return std::vector<std::optional<SweepRow>>{row_of("ok", 1)};
  });
  CHECK(tried == std::vector<size_t>{2, 1, 0});
}

TEST_CASE(
    "a search leaves out what cannot be among the fastest, and tries the most promising first") {
  LayoutTask task;
  task.samples = 100;
  std::vector<Layout> layouts;
  for (int64_t i = 0; i < 20; ++i) {  // the least time of each is 20, 19 .. 1 s
    Layout layout;
    layout.family = i;
    layout.least_time = Time(picoseconds_per_second) * (20 - i);
    layouts.push_back(layout);
  }
  std::vector<size_t> tried;
  const auto run = [&](const std::vector<size_t>& chosen) {
    std::vector<std::optional<SweepRow>> rows;
    for (const size_t index : chosen) {
      tried.push_back(index);
      const double took = 1.5 * seconds(layouts[index].least_time);
      rows.emplace_back(row_of("ok", 100 / took));
    }
    return rows;
  };
  const PlanResult result = search_plan(task, layouts, {.top = 2, .at_once = 1}, run);
  // The second fastest takes 3 s, so that none with a least time above 3 s can be among two.
  CHECK(tried == std::vector<size_t>{19, 18, 17});
  CHECK(result.too_slow == 17);
  REQUIRE(result.best.size() == 3);
  CHECK(result.best[1].layout.family == 18);
}

TEST_CASE("products of Megatron-LM keep the samples of a step, and positions and experts divide") {
  LayoutTask task = sixteen_ranks();
  task.is_megatron = true;
  task.positions = 4096;
  task.experts = 8;
  task.expert_parameters = 800'000;
  const std::vector<Layout> layouts = layouts_of(task);
  const Layout* const both = described(layouts, "Megatron tensor 2 context 2 expert 8");
  REQUIRE(both != nullptr);
  CHECK(both->replicas == 4);
  CHECK(both->batch_size == 16);
  CHECK(both->strategy.find("expert_model_parallel_size: 8") != std::string::npos);
  // 200 k parameters on 2 ranks, 800 k on 16, two bytes and four of gradients (buffers of fp32);
  // the state of 8 bytes on all 16.
  CHECK(both->model_states == Bytes(150'000 * 6 + 1'000'000 * 8 / 16));
  CHECK(described(layouts, "Megatron expert 16") == nullptr);
}

}  // namespace lockstep::cli::layouts_test
