// docs/catalogue.md: every row is covered by scenarios or tests that are there.
#include <catch2/catch.hpp>

#include "tests/cli_test/scenario_library.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace catalogue_test {

namespace {

/// | what happens | source | finding | shown by |
struct Row {
  int line = 0;
  std::string what;
  std::string source;
  std::string finding;
  std::string shown_by;
};

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t begin = 1, end = 0; (end = line.find('|', begin)) != std::string::npos;
       begin = end + 1) {
    cells.push_back(trimmed(line.substr(begin, end - begin)));
  }
  return cells;
}

std::vector<Row> rows_of(const std::string& page) {
  std::vector<Row> rows;
  int number = 0;
  for (size_t begin = 0, end = 0; (end = page.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    ++number;
    const std::string line = page.substr(begin, end - begin);
    if (!line.starts_with("| ") || line.ends_with("| shown by |")) {
      continue;
    }
    std::vector<std::string> cells = cells_of(line);
    cells.resize(4);  // what is missing is empty
    rows.push_back({number, cells[0], cells[1], cells[2], cells[3]});
  }
  return rows;
}

/// `tests/..cpp` "name of a test"
std::string problem_of_test(const std::string& file, const std::string& name) {
  std::string text = text_of_file(source_folder + "/" + file);
  if (text.empty()) {
    return "there is no file " + file;
  }
  for (size_t at = 0; (at = text.find("TEST_CASE(\n", at)) != std::string::npos;) {
    text.erase(at + 10, text.find('"', at) - at - 10);  // a long name stands on the next line
  }
  return text.find("TEST_CASE(\"" + name + "\"") == std::string::npos
             ? "there is no test \"" + name + "\" in " + file
             : "";
}

/// Why a row is not covered; empty: it is.
std::string problem_of(const Row& row) {
  if (row.what.empty() || row.source.empty() || row.finding.empty()) {
    return "a cell is empty";
  }
  if (row.shown_by.find("awaited") != std::string::npos) {
    return "its cover is awaited";
  }
  int covers = 0;
  std::set<std::string> codes;
  bool by_scenario = false;
  for (size_t begin = 0; (begin = row.shown_by.find('`', begin)) != std::string::npos; ++covers) {
    const size_t end = row.shown_by.find('`', begin + 1);
    const std::string name = row.shown_by.substr(begin + 1, end - begin - 1);
    begin = end + 1;
    std::string problem;
    if (name.starts_with("tests/")) {
      const size_t closing = row.shown_by.find('"', begin + 2);
      problem = row.shown_by.compare(begin, 2, " \"") != 0 || closing == std::string::npos
                    ? "a test is named by file and name"
                    : problem_of_test(name, row.shown_by.substr(begin + 2, closing - begin - 2));
    } else {
      const NamedScenario scenario = look_up_scenario("scenarios/" + name);
      codes.insert(scenario.codes.begin(), scenario.codes.end());
      problem = scenario.problem;
      by_scenario = true;
    }
    if (!problem.empty()) {
      return problem;
    }
  }
  if (covers == 0) {
    return "nothing shows it";
  }
  if (by_scenario && row.finding.starts_with("LS") && codes.count(row.finding) == 0) {
    return "no scenario of it expects " + row.finding;
  }
  return by_scenario && row.finding == "none" && !codes.empty() ? "a scenario of it has a finding"
                                                                : "";
}

}  // namespace

TEST_CASE("every row of the catalogue is shown by scenarios and tests that are there") {
  const std::vector<Row> rows = rows_of(text_of_file(source_folder + "/docs/catalogue.md"));
  CHECK(rows.size() >= 90);
  for (const Row& row : rows) {
    INFO("docs/catalogue.md:" << row.line << ": " << row.what);
    CHECK(problem_of(row) == "");
  }
}

TEST_CASE("every scenario of scenarios/catalogue is named by a row") {
  const std::string page = text_of_file(source_folder + "/docs/catalogue.md");
  for (const auto& entry :
       std::filesystem::directory_iterator(source_folder + "/scenarios/catalogue")) {
    INFO(entry.path());
    CHECK(page.find("`catalogue/" + entry.path().filename().string()) != std::string::npos);
  }
}

TEST_CASE("the rule of the catalogue sees each kind of row without a cover") {
  const auto problem = [](const std::string& finding, const std::string& shown_by) {
    return problem_of({1, "a pattern", "a source", finding, shown_by});
  };
  const std::string f1 = "`f1-averaged.yaml:averaged`";
  const std::string test = "`tests/cli_test/catalogue_test.cpp` ";
  CHECK(problem("LS301", f1) == "");
  CHECK(problem("none", "`f1-averaged.yaml:torchmetrics`") == "");
  CHECK(problem("LS301", test + "\"every scenario of scenarios/catalogue is named by a row\"") ==
        "");
  CHECK(problem("LS301", "") == "nothing shows it");
  CHECK(problem("LS301", "awaited " + f1) == "its cover is awaited");
  CHECK(problem("LS101", f1) == "no scenario of it expects LS101");
  CHECK(problem("none", f1) == "a scenario of it has a finding");
  CHECK(problem("LS301", "`nowhere.yaml`") == "there is no file scenarios/nowhere.yaml");
  CHECK(problem("LS301", "`f1-averaged.yaml:nowhere`") != "");
  CHECK(problem("LS301", test + "\"no such test\"") != "");
  CHECK(problem("LS301", test) == "a test is named by file and name");
  CHECK(problem("", f1) == "a cell is empty");
  CHECK(rows_of("| a | b | c | shown by |\n|---|---|---|---|\n| 1 | 2 | 3 |\n")[0].shown_by == "");
}

}  // namespace catalogue_test
