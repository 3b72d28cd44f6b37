// The scripts of the recordings of Horovod 0.28.1 as statements of a program without a trainer:
// `process_group: {backend: horovod}`.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/oracle/our_run.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;
using nlohmann::json;

namespace horovod_statements_test {

namespace {

/// One rank's script, with an assertion for each result that was recorded.
class Statements {
 public:
  Statements(const json& script, const json& results) : results_(&results) {
    for (const json& step : script) {
      if (step[0] == "wait") {
        wait();
      } else if (step[0] == "join") {
        add("join");
        ++next_result_;
      } else {
        hand_over(step);
      }
    }
  }
  const std::string& text() const { return text_; }

 private:
  void add(const std::string& statement) { text_ += "          - " + statement + "\n"; }

  // The values of a tensor are its position, and 10 for each rank.
  void hand_over(const json& step) {
    const std::string kind = step[0];
    const std::string tensor = fmt::format("t{}", made_++);
    add(fmt::format("let: {{{}: 1.0 * arange({}) + 10 * rank}}", tensor, step[3].get<int64_t>()));
    std::string option;
    if (kind == "all_reduce" && step[4] != "average") {
      option = ", op: " + step[4].get<std::string>();
    } else if (kind == "broadcast") {
      option = fmt::format(", src: {}", step[4].get<int64_t>());
    }
    add(fmt::format("{}: {{tensor: {}, name: {}{}, async: true, as: {}_out}}", kind, tensor,
                    step[1].get<std::string>(), option, tensor));
    waiting_.push_back(tensor + "_out");
  }

  void wait() {
    for (const std::string& name : std::exchange(waiting_, {})) {
      const json& result = results_->at(next_result_++);
      if (!result.is_array()) {
        add(
            fmt::format("try: {{do: [{{wait: {0}}}, {{let: {{{0}_raised: 0}}}}], "
                        "except: [{{let: {{{0}_raised: 1}}}}]}}",
                        name));
        add(fmt::format("assert: {}_raised == 1", name));
        continue;
      }
      add("wait: " + name);
      add(fmt::format("assert: len({}) == {}", name, result.size()));
      for (size_t i = 0; i < result.size(); ++i) {
        add(fmt::format("assert: {}[{}] == {}", name, i, result[i].get<double>()));
      }
    }
  }

  const json* results_;
  std::string text_;
  std::vector<std::string> waiting_;
  int made_ = 0;
  size_t next_result_ = 0;
};

std::string text_of_script(const json& recorded) {
  const json& script = recorded["setting"]["script"];
  std::string statements;
  for (size_t rank = 0; rank < script.size(); ++rank) {
    statements += fmt::format("    - if: rank == {}\n      then:\n{}", rank,
                              Statements(script[rank], recorded["ranks"][rank]["results"]).text());
  }
  return bare_text(static_cast<int>(script.size()), statements,
                   "process_group: {backend: horovod}\n");
}

// Statements make tensors of one type.
bool has_one_type(const json& script) {
  std::set<std::string> types;
  for (const json& steps : script) {
    for (const json& step : steps) {
      if (step.size() > 2) {
        types.insert(step[2].get<std::string>());
      }
    }
  }
  return types.size() == 1;
}

}  // namespace

TEST_CASE("statements over Horovod give what Horovod gave") {
  int compared = 0;
  for (const auto& path : recordings_in("horovod")) {
    const json recorded = recording_at(path);
    const json& setting = recorded["setting"];
    if (!setting.contains("script") || setting.contains("process_sets") ||
        !has_one_type(setting["script"])) {
      continue;
    }
    ++compared;
    DYNAMIC_SECTION(path.stem().string()) {
      const std::string text = text_of_script(recorded);
      INFO(text);
      const cli::Rehearsal ran = std::move(rehearsed(text).front().result);
      for (const Finding& finding : ran.findings) {
        UNSCOPED_INFO(finding.code << " " << finding.title);
      }
      CHECK(ran.findings.empty());
    }
  }
  CHECK(compared == 16);
}

}  // namespace horovod_statements_test
