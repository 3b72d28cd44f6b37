#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "cli/commands/commands.hpp"
#include "explain/explain_arguments.hpp"
#include "explain/explain_keys.hpp"
#include "explain/key_example_table.hpp"
#include "explain/key_examples.hpp"
#include "io/scenario/forms/tables.hpp"
#include "io/scenario/load/load.hpp"
#include "io/scenario/statements/statement_table.hpp"
#include "model/scenario/hooks.hpp"
#include "model/strategy/registry.hpp"
#include "model/trainer/prepare/prepare.hpp"
#include "rehearsal/run/faults.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace explain_keys_test {

namespace {

// Files that examples name: what they hold is for other tests.
const std::set<std::string> with_files = {"scenario.include", "cluster.nccl_xml",
                                          "cluster.nvidia_smi", "cluster.calibration", "model.hf"};

// The table has the key for every kind, and the program says where it means nothing: no single rank
// is struck by a link or a node, and what happens once does not last.
bool is_refused(const std::string& name) {
  static const std::set<std::string> known = {
      "fault.slow_link.rank",    "fault.slow_link.ranks",     "fault.lost_node.rank",
      "fault.lost_node.ranks",   "fault.lost_rank.for",       "fault.lost_node.for",
      "fault.lost_message.for",  "fault.corrupted_value.for", "fault.exception.for",
      "fault.out_of_memory.for", "fault.signal.for"};
  return known.count(name) != 0;
}

LoadedScenarios loaded(const std::string& text) {
  return load_scenario_file(
      "scenario.yaml", {},
      [&](const std::string&, size_t) -> std::variant<std::string, FileError> { return text; });
}

std::string trouble_of(const std::string& text) {
  const LoadedScenarios scenarios = loaded(text);
  if (!scenarios.ok()) {
    return scenarios.diagnostics.front().message;
  }
  WorldAbilities abilities;
  abilities.faults = every_fault();
  abilities.calibration = abilities.topology_files = true;
  for (const Scenario& scenario : scenarios.scenarios) {
    for (const Problem& problem : prepare(scenario, standard_strategies(), abilities).problems) {
      if (problem.kind == Problem::Kind::invalid || problem.kind == Problem::Kind::unsupported) {
        return problem.message;
      }
    }
  }
  return "";
}

}  // namespace

TEST_CASE("the reference page marks the keys that are not modelled, and no other") {
  std::ifstream page(LOCKSTEP_SOURCE_DIR "/docs/scenario-format.md");
  REQUIRE(page.good());
  const std::string head = "<!-- keys of ";
  std::set<std::string> marked;
  std::string table;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with(head)) {
      table = line.substr(head.size(), line.find(" -->") - head.size()) + ".";
    } else if (line.starts_with("| `") && line.ends_with("; *not modelled yet* |")) {
      marked.insert(table + line.substr(3, line.find('`', 3) - 3));
    }
  }
  const auto keys = keys_not_modelled();
  CHECK(marked == std::set<std::string>(keys.begin(), keys.end()));
}

TEST_CASE("every key of a scenario has a page with a scenario that shows it") {
  for (const TableRows& table : all_tables()) {
    if (table.statement) {
      continue;
    }
    for (const KeyRow& row : table.rows) {
      const std::string name = std::string(table.name) + "." + std::string(row.key);
      INFO(name);
      const auto page = find_key_page(name);
      REQUIRE(page);
      CHECK(page->meaning == row.meaning);
      CHECK(page->scenario.empty() == is_refused(name));
      if (page->scenario.empty()) {
        continue;
      }
      INFO(page->scenario);
      CHECK(page->scenario.find(std::string(row.key) + ":") != std::string::npos);
      if (with_files.count(name) == 0) {
        const std::string trouble = trouble_of(page->scenario);
        INFO(trouble);
        CHECK(page->is_modelled == trouble.empty());
        CHECK(page->is_modelled == (trouble.find("not modelled yet") == std::string::npos));
      }
    }
  }
}

TEST_CASE("every statement has a page with its keys and a scenario that runs") {
  for (const StatementRow& row : statement_rows()) {
    INFO(row.name());
    const auto page = find_key_page(row.name());
    REQUIRE(page);
    CHECK(page->keys.size() == row.fields.size());
    INFO(page->scenario);
    CHECK(page->scenario.find(row.name()) != std::string::npos);
    CHECK(trouble_of(page->scenario) == "");
    const Rehearsal ran = std::move(rehearsed(page->scenario).front().result);
    CHECK_FALSE(ran.hung);
    for (const Finding& finding : ran.findings) {
      INFO(finding.title);
      CHECK(finding.level != Level::error);
    }
  }
}

TEST_CASE("every hook has a page that says when it is called, and a scenario that runs") {
  for (const HookName& hook : hook_names()) {
    INFO(hook.name);
    CHECK_FALSE(hook.when.empty());
    const auto page = find_key_page("program." + std::string(hook.name));
    REQUIRE(page);
    CHECK(page->is_modelled == hook.called);
    INFO(page->scenario);
    const std::string trouble = trouble_of(page->scenario);
    INFO(trouble);
    CHECK(hook.called == trouble.empty());
    if (hook.called) {
      const Rehearsal ran = std::move(rehearsed(page->scenario).front().result);
      CHECK(std::ranges::none_of(ran.findings, [](const Finding& finding) {
        return finding.level == Level::error || finding.code == "LS502";
      }));
    }
  }
  CHECK(find_key_page("on_train_start")->name == "program.on_train_start");
  CHECK(find_key_page("optimizer_step")->name == "optimizer_step");
}

TEST_CASE("a key may be named alone, and where it is in several tables they are listed") {
  CHECK(find_key_page("precision")->name == "trainer.precision");
  CHECK(find_key_page("signal")->name == "fault.signal");
  CHECK(find_key_page("sync_grads")->name == "all_gather");
  CHECK(find_key_page("slowdown")->others ==
        std::vector<std::string>{"fault.straggler.slowdown", "fault.slow_data.slowdown"});
  CHECK_FALSE(find_key_page("no_such_key"));
  CHECK_FALSE(find_key_page("trainer.no_such_key"));
}

TEST_CASE("each library of `versions` and what scripts call for strategies has a page that runs") {
  for (const std::string& name : argument_page_names()) {
    INFO(name);
    const std::optional<KeyPage> page = find_argument_page(name);
    REQUIRE(page.has_value());
    CHECK(page->name == name);
    INFO(page->scenario);
    CHECK(trouble_of(page->scenario).empty());
    Request request;
    request.command = "explain";
    request.arguments = {name};
    CHECK(explain_command(request).text == text_of(*page));
  }
  CHECK_FALSE(find_argument_page("versions.python").has_value());
}

TEST_CASE("the releases that a page of `versions` names are those that are taken") {
  const auto trouble = [](std::string_view library, int major, int minor) {
    return trouble_of(
        scenario_with(fmt::format("versions: {{{}: \"{}.{}\"}}", library, major, minor)));
  };
  for (const ModelledVersions& versions : modelled_versions()) {
    INFO(versions.library);
    const auto page = find_argument_page(fmt::format("versions.{}", versions.library));
    REQUIRE(page.has_value());
    int major = 0, minor = 0, last_major = 0, last_minor = 0;
    REQUIRE(std::sscanf(page->keys.front().type.c_str(), "text, \"%d.%d\" to \"%d.%d\"", &major,
                        &minor, &last_major, &last_minor) == 4);
    CHECK(trouble(versions.library, last_major, last_minor).empty());
    CHECK(trouble(versions.library, last_major, last_minor + 1).find("is not modelled") !=
          std::string::npos);
    CHECK(trouble(versions.library, major, minor).find("is not modelled") == std::string::npos);
    const bool is_first = minor == 0;  // of its major release
    CHECK(trouble(versions.library, major - (is_first ? 1 : 0), is_first ? 99 : minor - 1)
              .find("is not modelled") != std::string::npos);
  }
}

TEST_CASE("fully_shard takes what its page names, and nothing else") {
  const auto trouble = [](const std::string& argument) {
    return trouble_of(scenario_with(
        "trainer: {accelerator: gpu, devices: 2, max_epochs: 1, strategy: {ModelParallelStrategy: "
        "{data_parallel_size: 2, tensor_parallel_size: 1, fully_shard: {" +
        argument + "}}}}"));
  };
  const std::map<std::string, std::string> values = {{"modules", "[Linear]"},
                                                     {"reshard_after_forward", "false"},
                                                     {"mp_policy", "{param_dtype: bf16}"},
                                                     {"ignored_params", "[Linear]"},
                                                     {"mesh", "[1, 2]"},
                                                     {"offload_policy", "CPUOffloadPolicy"},
                                                     {"shard_placement_fn", "f"}};
  const KeyPage page = find_argument_page("ModelParallelStrategy.fully_shard").value();
  CHECK(page.keys.size() == values.size());
  for (const KeyPage::Key& key : page.keys) {
    INFO(key.name);
    CHECK(trouble(key.name + ": " + values.at(key.name)).empty() ==
          (key.use != ArgumentUse::unmodelled));
  }
  CHECK_FALSE(trouble("moduls: [Linear]").empty());
}

}  // namespace explain_keys_test
