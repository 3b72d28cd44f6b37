#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "cli/commands/commands.hpp"
#include "explain/explain_classes.hpp"
#include "explain/explain_presets.hpp"
#include "io/scenario/classes/other_classes.hpp"
#include "io/scenario/load/load.hpp"
#include "model/strategy/registry.hpp"
#include "model/trainer/prepare/prepare.hpp"
#include "rehearsal/run/faults.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace explain_classes_test {

namespace {

std::vector<Problem> problems_of(const std::string& text) {
  const LoadedScenarios scenarios = load_scenario_file(
      "scenario.yaml", {},
      [&](const std::string&, size_t) -> std::variant<std::string, FileError> { return text; });
  for (const Diagnostic& diagnostic : scenarios.diagnostics) {
    FAIL(diagnostic.message);
  }
  std::vector<Problem> problems;
  for (const Problem& problem :
       prepare(scenarios.scenarios.front(), standard_strategies(), WorldAbilities{}).problems) {
    if (problem.stops()) {
      problems.push_back(problem);
    }
  }
  return problems;
}

// A class by its bare name, where its role is given.
std::string bare(ObjectRole role, std::string_view name) {
  const std::string head = "version: 1\ncluster: {preset: dgx-a100}\n";
  const std::string trainer = "trainer: {accelerator: gpu, devices: 2, max_epochs: 1";
  const std::string named(name);
  switch (role) {
    case ObjectRole::strategy: return head + trainer + ", strategy: " + named + "}\n";
    case ObjectRole::callback: return head + trainer + ", callbacks: [" + named + "]}\n";
    case ObjectRole::metric:
      return head + trainer + "}\nmetrics: {quality: " + named +
             "}\nprogram: {training_step: [{update: quality}]}\n";
    case ObjectRole::logger:
    case ObjectRole::profiler:
      return head + trainer + ", " + std::string(name_of(role)) + ": " + named + "}\n";
    case ObjectRole::plugin: return head + trainer + ", plugins: [" + named + "]}\n";
    case ObjectRole::layer:
      return head + trainer + "}\nmodel: {input: [4], layers: [" + named + "]}\n";
    case ObjectRole::loss:
      return head + trainer + "}\nmodel: {input: [4], layers: [{Linear: [4, 4]}], loss: " + named +
             "}\n";
    default: return head + trainer + "}\n" + std::string(name_of(role)) + ": " + named + "\n";
  }
}

void runs(const std::string& scenario) {
  INFO(scenario);
  for (const Problem& problem : problems_of(scenario)) {
    FAIL_CHECK(problem.message);
  }
  const Rehearsal ran = std::move(rehearsed(scenario).front().result);
  CHECK_FALSE(ran.hung);
  for (const Finding& finding : ran.findings) {
    INFO(finding.title);
    CHECK(finding.level != Level::error);
  }
}

}  // namespace

TEST_CASE("every class has a page: a scenario that runs, or that it is not modelled") {
  for (const ObjectRole role : explained_roles()) {
    for (const ClassRow& row : classes(role)) {
      INFO(row.name);
      const auto page = find_class_page(std::string(name_of(role)) + "." + std::string(row.name));
      REQUIRE(page);
      CHECK(page->keys.size() == arguments_of(row).size());
      if (page->is_modelled) {
        CHECK(page->scenario.find(row.name) != std::string::npos);
        runs(page->scenario);
      } else {
        CHECK_FALSE(problems_of(bare(role, row.name)).empty());
      }
    }
  }
}

TEST_CASE("every argument that the language adds has a page and a scenario that runs") {
  for (const std::string& name : added_argument_names()) {
    INFO(name);
    const auto page = find_class_page(name);
    REQUIRE(page);
    CHECK_FALSE(page->meaning.empty());
    CHECK(page->scenario.find(name.substr(name.find('.') + 1) + ":") != std::string::npos);
    if (name != "strategy.throw_on_early_termination") {  // it is there to raise
      runs(page->scenario);
    }
  }
}

TEST_CASE("a class is found by name, by role and name, and by an argument of its own") {
  CHECK(find_class_page("EarlyStopping")->meaning == "a callback of Lightning");
  CHECK(find_class_page("callback.EarlyStopping")->name == "EarlyStopping");
  CHECK(find_class_page("EarlyStopping.patience")->name == "EarlyStopping");
  CHECK(find_class_page("SGD.scaling")->name == "SGD.scaling");
  CHECK(find_class_page("scaling")->name == "optimizer.scaling");
  CHECK_FALSE(find_class_page("EarlyStopping.scaling"));
  CHECK_FALSE(find_class_page("NoSuchClass"));
}

TEST_CASE("every argument of a modelled strategy is explained, with its default") {
  const StrategyRegistry registry = standard_strategies();
  for (const ClassRow& row : classes(ObjectRole::strategy)) {
    if (registry.arguments_of_class(row.name) == nullptr) {
      continue;
    }
    INFO(row.name);
    const auto page = find_class_page(row.name);
    REQUIRE(page);
    CHECK(page->is_modelled);
    for (const KeyPage::Key& key : page->keys) {
      INFO(key.name);
      CHECK_FALSE(key.meaning.empty());
      CHECK_FALSE(key.default_text.empty());
      CHECK(key.use);
    }
    CHECK(text_of(*page).find("Its own arguments") == std::string::npos);
  }
}

TEST_CASE("the page of a strategy has a table of its arguments, and those without effect apart") {
  const std::string fsdp = text_of(*find_class_page("FSDPStrategy"));
  CHECK(fsdp.find("  use_orig_params ") != std::string::npos);
  CHECK(fsdp.find("bool  gathers the next unit before the forward of this one (false)\n") !=
        std::string::npos);
  const size_t not_modelled = fsdp.find("\n  Not modelled: ");
  REQUIRE(not_modelled != std::string::npos);
  CHECK(fsdp.find("param_init_fn", not_modelled) != std::string::npos);
  CHECK(fsdp.find("cluster_environment", not_modelled) != std::string::npos);
  CHECK(fsdp.find("gathers_optimizer_state") == std::string::npos);  // no scenario writes it
  const std::string deepspeed = text_of(*find_class_page("DeepSpeedStrategy"));
  const size_t apart = deepspeed.find("\n  Taken, and without effect here: remote_device ");
  REQUIRE(apart != std::string::npos);
  CHECK(deepspeed.find("  stage ") < apart);
  CHECK(deepspeed.find("nvme_path") > apart);
  CHECK(find_class_page("join")->keys.front().default_text == "false");
  const Json json = json_of(*find_class_page("DeepSpeedStrategy"));
  for (const Json& key : json["keys"]) {
    if (key["name"] == "stage") {
      CHECK(key["default"] == "2");
      CHECK(key["use"] == "modelled");
    } else if (key["name"] == "nvme_path") {
      CHECK(key["use"] == "without effect");
    }
  }
  CHECK(json_of(*find_class_page("EarlyStopping"))["keys"][0]["use"].is_null());
}

TEST_CASE("every name that is known and not modelled has a page that says so") {
  for (const ObjectRole role : explained_roles()) {
    for (const std::string_view name : known_classes(role)) {
      INFO(name);
      const auto page = find_class_page(name);
      REQUIRE(page);
      const bool has_row = std::ranges::any_of(explained_roles(), [&](ObjectRole other) {
        return find_class(other, name) != nullptr;  // Precision is a plugin and a metric
      });
      // A name that some version takes for a strategy, or nobody: the page says what it stands for,
      // or that a version refuses it.
      const bool says_what_becomes = page->meaning.find("(LS501)") != std::string::npos ||
                                     page->meaning.find(": today's ") != std::string::npos;
      CHECK((has_row || !page->is_modelled || says_what_becomes));  // xla: a profiler, too
    }
  }
}

// Counted by hand: 8 x 4 weights and 4 biases; a multiply-add is 2 FLOPs; ReLU's backward reads its
// output, 8 numbers of 4 bytes; a 3 x 3 convolution of 3 into 8 channels over 8 x 8 pixels.
TEST_CASE("the page of a layer says its figures in the example") {
  const auto linear = find_class_page("Linear");
  REQUIRE(linear);
  CHECK(linear->facts ==
        std::vector<std::string>{
            "[8] becomes [4]", "weight [4, 8], bias [4]: 36 parameters",
            "64 FLOPs forward, 128 for both gradients, in matrix products and convolutions",
            "0 bytes kept for the backward, the input of the network not counted"});
  const auto convolution = find_class_page("Conv2d");
  REQUIRE(convolution);
  CHECK(convolution->facts[1] == "weight [8, 3, 3, 3], bias [8]: 224 parameters");
  CHECK(convolution->facts[2].starts_with("27648 FLOPs forward, 55296 for both"));
  CHECK_FALSE(find_class_page("SyncBatchNorm")->is_modelled);
  CHECK(find_class_page("HuberLoss")->scenario.find("loss: {HuberLoss: {delta: 0.5}}") !=
        std::string::npos);
}

TEST_CASE("every spelling of a preset has a page whose example runs") {
  std::set<std::string> shown;
  for (const std::string& name : preset_page_names()) {
    INFO(name);
    const auto page = find_preset_page(name);
    REQUIRE(page);
    if (page->is_modelled && shown.insert(page->name).second) {
      CHECK_FALSE(page->facts.empty());
      for (const Problem& problem : problems_of(page->scenario)) {
        FAIL_CHECK(problem.message);
      }
    }
  }
  CHECK(find_preset_page("p4d")->name == "p4d.24xlarge");
  CHECK(find_preset_page("V100")->name == "v100-sxm2-32gb");
  CHECK(find_preset_page("gpt2-small")->name == "gpt2");
  CHECK_FALSE(find_preset_page("no-such-preset"));
}

TEST_CASE("a class that TorchMetrics has and that is not modelled has a page that says why") {
  const auto page = find_class_page("BERTScore");
  REQUIRE(page);
  CHECK_FALSE(page->is_modelled);
  CHECK(page->meaning.find("torchmetrics.text") != std::string::npos);
  CHECK(page->meaning.find("Perplexity") != std::string::npos);
}

TEST_CASE("a metric that is not modelled is one problem, and no name is missing because of it") {
  const std::string text =
      "version: 1\ncluster: {preset: dgx-a100}\n"
      "trainer: {accelerator: gpu, devices: 2, max_epochs: 1}\n"
      "metrics: {quality: {BERTScore: {lang: en}}}\n"
      "program:\n"
      "  training_step: [{update: quality}, {log: {name: a, value: quality}}]\n"
      "  on_train_epoch_end: [{compute: {metric: quality, as: value}}]\n";
  const std::vector<Problem> problems = problems_of(text);
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().kind == Problem::Kind::unsupported);
  CHECK(problems.front().message.find("BERTScore") != std::string::npos);
  CHECK(problems.front().remedy.find("Perplexity") != std::string::npos);
}

TEST_CASE("a metric that TorchMetrics has not is one error with the nearest name") {
  const LoadedScenarios scenarios = load_scenario_file(
      "scenario.yaml", {}, [](const std::string&, size_t) -> std::variant<std::string, FileError> {
        return "version: 1\ncluster: {preset: dgx-a100}\n"
               "trainer: {accelerator: gpu, devices: 2, max_epochs: 1}\n"
               "metrics: {quality: BERTScoer}\n"
               "program: {training_step: [{update: quality}]}\n";
      });
  REQUIRE(scenarios.diagnostics.size() == 1);
  CHECK(scenarios.diagnostics.front().remedy.find("BERTScore") != std::string::npos);
}

}  // namespace explain_classes_test
