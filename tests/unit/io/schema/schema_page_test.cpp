#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "io/scenario/forms/tables.hpp"
#include "io/scenario/statements/statement_table.hpp"
#include "io/schema/schema.hpp"

namespace lockstep::schema_page_test {
namespace {

using Cells = std::vector<std::string>;

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

Cells cells_of(const std::string& line) {
  Cells cells;
  std::istringstream stream(line.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) {
    cells.push_back(trimmed(cell));
  }
  return cells;
}

/// The rows of the page below each `<!-- keys of NAME -->`, without the head.
std::map<std::string, std::vector<Cells>> page_tables() {
  std::ifstream page(LOCKSTEP_SOURCE_DIR "/docs/scenario-format.md");
  REQUIRE(page.good());
  const std::string marker = "<!-- keys of ";
  std::map<std::string, std::vector<Cells>> tables;
  std::vector<Cells>* table = nullptr;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with(marker)) {
      table = &tables[line.substr(marker.size(), line.find(" -->") - marker.size())];
    } else if (table != nullptr && line.starts_with("| `")) {
      table->push_back(cells_of(line));
    } else if (line.empty()) {
      table = nullptr;
    }
  }
  return tables;
}

std::string type_of(const KeyRow& row) {
  std::string type(row.type);
  if (!row.words.empty()) {
    type = "`";
    for (const std::string_view word : row.words) {
      type += (type.size() > 1 ? " " : "") + std::string(word);
    }
    type += "`";
  }
  return row.list ? "list of " + type : type;
}

}  // namespace

TEST_CASE("the reference page has the loader's keys with their types and defaults, and no other") {
  const auto page = page_tables();
  size_t tables = 0;
  for (const TableRows& table : all_tables()) {
    if (table.statement) {
      continue;
    }
    ++tables;
    CAPTURE(table.name);
    REQUIRE(page.count(std::string(table.name)) == 1);
    const auto& rows = page.at(std::string(table.name));
    REQUIRE(rows.size() == table.rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const KeyRow& row = table.rows[i];
      CHECK(rows[i][0] == "`" + std::string(row.key) + "`");
      CHECK(rows[i][1] == type_of(row));
      CHECK(rows[i][2] == (row.default_text.empty() ? "none" : std::string(row.default_text)));
    }
  }
  CHECK(page.size() == tables + 1);
}

TEST_CASE("the reference page has the loader's statements with their keys, and no other") {
  const auto rows = page_tables().at("statements");
  REQUIRE(rows.size() == statement_rows().size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const StatementRow& row = statement_rows()[i];
    const std::string name = "`" + std::string(row.name()) + "`" + (row.bare() ? "°" : "");
    CAPTURE(name);
    CHECK((rows[i][0] == name || rows[i][0] == name + " C"));
    const bool communication = rows[i][0].ends_with(" C");
    const std::set<std::string_view> common = {"tensor", "elements", "dtype", "group",
                                               "stream", "async",    "as"};
    std::string keys;
    for (const Field<Statement>& known : row.fields) {
      if (communication && common.count(known.row.key) > 0) {
        continue;
      }
      const std::string key = "`" + std::string(known.row.key) + "`";
      CAPTURE(key);
      CHECK(rows[i][1].find(key) != std::string::npos);
      keys += key;
    }
    // Each key of the page is one of the loader's: keys are what stands in backquotes at the head
    // of a part.
    std::istringstream parts(rows[i][1]);
    for (std::string part; std::getline(parts, part, ',');) {
      const size_t begin = part.find('`');
      if (begin == std::string::npos || part.find_first_not_of(" *") != begin) {
        continue;
      }
      const std::string key = part.substr(begin, part.find('`', begin + 1) - begin + 1);
      CAPTURE(key);
      CHECK(keys.find(key) != std::string::npos);
    }
  }
}

TEST_CASE("the schema says what arguments of strategies mean, and their defaults") {
  const nlohmann::json schema = nlohmann::json::parse(json_schema());
  const auto argument = [&](const char* strategy, const char* name) {
    return schema["definitions"]["strategy"]["anyOf"][1]["properties"][strategy]["anyOf"][0]
                 ["properties"][name];
  };
  CHECK(argument("FSDPStrategy", "forward_prefetch") ==
        nlohmann::json{{"default", false},
                       {"description",
                        "gathers the next unit before the forward of this one. "
                        "Default: false"}});
  CHECK(argument("DeepSpeedStrategy", "reduce_bucket_size")["default"] == 200'000'000);
  CHECK(argument("DDPStrategy", "bucket_cap_mb")["default"].is_null());
  CHECK(argument("ModelParallelStrategy", "data_parallel_size")["default"] == "auto");
}

TEST_CASE("every reference of the schema names a definition") {
  const nlohmann::json schema = nlohmann::json::parse(json_schema());
  CHECK(schema["$schema"] == "http://json-schema.org/draft-07/schema#");
  std::set<std::string> referenced;
  const std::function<void(const nlohmann::json&)> walk = [&](const nlohmann::json& node) {
    if (node.is_object() && node.contains("$ref") && node["$ref"].is_string()) {
      referenced.insert(node["$ref"].get<std::string>());
    }
    if (node.is_structured()) {
      for (const auto& child : node) {
        walk(child);
      }
    }
  };
  walk(schema);
  const std::string prefix = "#/definitions/";
  for (const std::string& reference : referenced) {
    CAPTURE(reference);
    REQUIRE(reference.starts_with(prefix));
    CHECK(schema["definitions"].contains(reference.substr(prefix.size())));
  }
  CHECK(referenced.size() > 20);
}

TEST_CASE("the schema has every key of every section") {
  const nlohmann::json schema = nlohmann::json::parse(json_schema());
  for (const KeyRow& row : find_rows("scenario")->rows) {
    CHECK(schema["properties"].contains(std::string(row.key)));
  }
  for (const std::string table : {"cluster", "cluster.gpu", "model", "data", "trainer", "verify"}) {
    for (const KeyRow& row : find_rows(table)->rows) {
      CAPTURE(table, row.key);
      CHECK(schema["definitions"][table]["properties"].contains(std::string(row.key)));
    }
  }
}

}  // namespace lockstep::schema_page_test
