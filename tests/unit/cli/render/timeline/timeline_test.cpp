#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "cli/render/timeline/placement.hpp"
#include "cli/render/timeline/rank_spans.hpp"
#include "explain/explain_codes.hpp"
#include "tests/unit/cli/render/timeline/trace_rules.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace timeline_test {

namespace {

namespace fs = std::filesystem;

std::vector<Job> run_once_each(const CaseSource& source) {
  Collected collected = collect(source);
  REQUIRE(collected.diagnostics.empty());
  RehearseRequest request;
  request.explore = false;
  rehearse_all(collected.jobs, request, Judges::quantities, 1);
  return std::move(collected.jobs);
}

Json trace_of_text(const std::string& text) {
  const std::vector<Job> jobs = run_once_each(source_of_text(text));
  Json events = trace_of(jobs.front().result);
  CHECK(broken_rules(events) == std::vector<std::string>());
  return events;
}

/// Slices of one rank, of these categories, in the order of the file.
std::vector<Json> slices(const Json& events, int rank, const std::set<std::string>& categories) {
  std::vector<Json> found;
  for (const Json& event : events) {
    if ((event.at("ph") == "X" || event.at("ph") == "B") && event.at("pid") == rank &&
        categories.contains(event.at("cat"))) {
      found.push_back(event);
    }
  }
  return found;
}

std::vector<std::string> names(const std::vector<Json>& events) {
  std::vector<std::string> all;
  for (const Json& event : events) {
    all.push_back(event.at("name"));
  }
  return all;
}

using Names = std::vector<std::string>;

// Two steps of two layers on two ranks: 8 samples for each rank, 4 a batch.
const std::string two_layers = R"yaml(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
model:
  layers:
    - {Linear: {in_features: 8, out_features: 4}, name: fc1}
    - {Linear: {in_features: 4, out_features: 2}, name: fc2}
  loss: MSELoss
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0, enable_checkpointing: false}
data: {train: {samples: 16, batch_size: 4}}
)yaml";

}  // namespace

TEST_CASE("timelines of the scenarios keep the rules of traces") {
  int traces = 0;
  int hangs = 0;
  for (const auto& entry : fs::directory_iterator(LOCKSTEP_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".yaml") {
      continue;
    }
    for (const Job& job : run_once_each(split_case(entry.path().string()))) {
      if (!job.result.ran()) {
        continue;
      }
      INFO(entry.path().string() << ":" << job.scenario->name);
      const Json events = trace_of(job.result);
      CHECK(broken_rules(events) == Names());
      ++traces;
      for (const Finding& finding : job.result.findings) {
        const std::vector<Level> levels = levels_of(finding.code);
        INFO(finding.code << " as " << name_of(finding.level));
        CHECK((finding.code.empty() ||
               std::find(levels.begin(), levels.end(), finding.level) != levels.end()));
      }
      std::set<int> open;
      for (const Json& event : events) {
        if (event.at("ph") == "B") {
          open.insert(event.at("pid").get<int>());
        }
      }
      // Every rank that waits forever shows a call that is open.
      for (const WaitingLane& lane : job.result.run.result.waiting) {
        CHECK((lane.rank >= 64 || open.contains(lane.rank)));
        ++hangs;
      }
    }
  }
  CHECK(traces > 100);
  CHECK(hangs > 20);
}

TEST_CASE("a step holds its forward and backward by layer and its optimizer") {
  const Json events = trace_of_text(two_layers);
  const std::vector<Json> found = slices(events, 0, {"step", "forward", "backward", "optimizer"});
  CHECK(names(found) == Names{"step 0", "forward", "backward", "optimizer", "step 1", "forward",
                              "backward", "optimizer"});
  Names layers;
  const Json* flops_of_fc1 = nullptr;
  const std::vector<Json> kernels = slices(events, 0, {"compute"});
  for (const Json& event : kernels) {
    const std::string name = event.at("name");
    if (name.starts_with("forward ") || name.starts_with("backward ")) {
      layers.push_back(name);
    }
    if (name == "forward fc1") {
      flops_of_fc1 = &event.at("args").at("flops");
    }
  }
  const Names step = {"forward fc1",       "forward fc2",  "forward mse_loss",
                      "backward mse_loss", "backward fc2", "backward fc1"};
  Names both = step;
  both.insert(both.end(), step.begin(), step.end());
  CHECK(layers == both);
  REQUIRE(flops_of_fc1 != nullptr);
  CHECK(*flops_of_fc1 == 2 * 8 * 4 * 4);  // two a weight and sample
}

TEST_CASE("a call has one id on all ranks with its group and its number there") {
  const Json events = trace_of_text(bare_text(4, R"yaml(    - all_reduce: {elements: 16, as: a}
    - new_group: {ranks: [1, 2], as: pair}
    - if: rank == 1 or rank == 2
      then:
        - all_reduce: {elements: 3, group: pair, as: b}
        - broadcast: {elements: 5, group: pair, src: 1, as: c}
    - barrier
)yaml"));
  std::map<std::string, std::set<int>> ranks;
  std::map<std::string, Json> calls;
  for (int rank = 0; rank < 4; ++rank) {
    for (const Json& event : slices(events, rank, {"all_reduce", "broadcast", "new_group"})) {
      const std::string id = event.at("args").at("collective");
      CHECK(ranks[id].insert(rank).second);
      calls[id] = event;
    }
  }
  const std::set<int> all = {0, 1, 2, 3};
  const std::set<int> two = {1, 2};
  CHECK(ranks == std::map<std::string, std::set<int>>{{"world #1", all},
                                                      {"world #2", all},
                                                      {"pair (ranks 1-2) #1", two},
                                                      {"pair (ranks 1-2) #2", two},
                                                      {"world #3", all}});
  CHECK(calls["world #1"].at("args").at("bytes") == 64);
  CHECK(calls["world #2"].at("name") == "new_group");
  CHECK(calls["world #3"].at("name") == "barrier");
  const Json& broadcast = calls["pair (ranks 1-2) #2"].at("args");
  CHECK(broadcast.at("group") == "pair (ranks 1-2)");
  CHECK(broadcast.at("call") == 2);
  CHECK(broadcast.at("bytes") == 20);
  CHECK(broadcast.at("root") == 1);
}

TEST_CASE("the call that hangs is open on the ranks that wait and on no other") {
  const Json events = trace_of_text(bare_text(2, "    - kernel: 5 ms\n" + guarded_statements));
  std::map<int, Names> open;
  for (const Json& event : events) {
    if (event.at("ph") == "B") {
      open[event.at("pid").get<int>()].push_back(event.at("name"));
      if (event.at("cat") == "all_gather") {
        CHECK(event.at("ts") == 5000);  // behind the kernel
        CHECK(event.at("args").at("call") == 1);
      }
    }
  }
  REQUIRE(open.size() == 1);
  CHECK(std::set<std::string>(open[0].begin(), open[0].end()) ==
        std::set<std::string>{"main", "wait for compute", "all_gather"});
}

TEST_CASE("a step in which a rank hangs never ends and neither does the host in its hook") {
  const Json events = trace_of_text(two_layers + R"yaml(
program:
  on_before_optimizer_step:
    - if: is_global_zero
      then: [{all_reduce: {elements: 4, as: x}}, synchronize]
)yaml");
  Names open;
  for (const Json& event : slices(events, 0, {"step", "backward", "hook", "wait"})) {
    if (event.at("ph") == "B") {
      open.push_back(event.at("name"));
    }
  }
  CHECK(std::set<std::string>(open.begin(), open.end()) ==
        std::set<std::string>{"step 0", "on_before_optimizer_step", "wait for compute"});
  // The other rank made its update, and waits in a call of Lightning behind it.
  CHECK(slices(events, 1, {"step"}).front().at("ph") == "X");
  CHECK(slices(events, 1, {"broadcast"}).back().at("ph") == "B");
}

TEST_CASE("the host shows hooks with their statements and what it waits for") {
  const Json events = trace_of_text(two_layers + R"yaml(
program:
  training_step:
    - host: 2 ms
    - all_reduce: {elements: 4, as: x}
)yaml");
  const std::vector<Json> hooks = slices(events, 1, {"hook"});
  CHECK(names(hooks) == Names{"training_step", "training_step"});
  const std::vector<Json> statements = slices(events, 1, {"statement"});
  CHECK(names(statements) == Names{"host", "all_reduce", "host", "all_reduce"});
  CHECK(statements.front().at("dur") == 2000);
  CHECK(statements.front().at("tid") == hooks.front().at("tid"));
  CHECK(statements.front().at("args").at("site").get<std::string>().starts_with("scenario.yaml:"));
  const Names waits = names(slices(events, 1, {"wait"}));
  CHECK(std::count(waits.begin(), waits.end(), "wait for barrier") > 0);
}

TEST_CASE("what overlaps on one track goes to a track beside it") {
  const auto span = [](int64_t start, int64_t finish, Span::Kind kind) {
    Span made;
    made.kind = kind;
    made.start = Time(start);
    made.finish = finish < 0 ? never : Time(finish);
    return made;
  };
  constexpr auto operation = Span::Kind::operation;
  TrackPlacement placement;
  CHECK(placement.place(span(0, 100, Span::Kind::step)) == 0);
  CHECK(placement.place(span(0, 40, operation)) == 0);
  CHECK(placement.place(span(20, 60, operation)) == TrackPlacement::overflow_step);
  CHECK(placement.place(span(25, 30, operation)) == 2 * TrackPlacement::overflow_step);
  CHECK(placement.place(span(40, 100, operation)) == 0);
  CHECK(placement.place(span(90, 110, operation)) == TrackPlacement::overflow_step);
  CHECK(placement.place(span(100, -1, operation)) == 0);
}

TEST_CASE("spans of a rank stay within the room they get and the rest is counted") {
  const std::vector<Job> jobs = run_once_each(source_of_text(bare_text(
      2, "    - repeat: 100\n      do:\n        - all_reduce: {elements: 64, as: sum}\n")));
  const RunResult& run = jobs.front().result.run.result;
  const RankSpans whole = spans_of_rank(run, 0, 1'000'000);
  const RankSpans part = spans_of_rank(run, 0, 10);
  const auto size = [](const RankSpans& spans) {
    return static_cast<int64_t>(spans.spans.size() + spans.memory.size());
  };
  CHECK(whole.left_out == 0);
  CHECK(size(part) == 10);
  CHECK(size(part) + part.left_out == size(whole));
}

}  // namespace timeline_test
