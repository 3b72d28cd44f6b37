// Rows of a sweep as CSV and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/render/sweep/sweep_table.hpp"
#include "cli/render/sweep/sweep_view.hpp"
#include "rehearsal/sweep/csv_cells.hpp"

namespace lockstep::cli {

namespace {

// A number or truth value as such, everything else as it was written.
Json value_json(const std::string& text) {
  const Value value = value_of_text(text);
  switch (value.kind()) {
    case Value::Kind::boolean: return value.boolean();
    case Value::Kind::integer: return value.integer();
    case Value::Kind::floating: return value.floating();
    default: return text;
  }
}

std::string cell_of(const Json& value) {
  if (value.is_null()) {
    return "";
  }
  return csv_cell(printable(value.is_string() ? value.get<std::string>() : value.dump()));
}

}  // namespace

std::string sweep_csv(const ShownSweep& sweep) {
  std::string text = "case";
  for (const std::string& key : sweep.header.keys) {
    text += "," + cell_of(key);
  }
  text += ",verdict,codes,message";
  for (const std::string_view name : figure_names()) {
    text += "," + figure_key(name);
  }
  text += ",command\n";
  for (const std::string* line : sweep.lines) {
    const Json row = Json::parse(*line);
    text += row.at("case").dump();
    for (const std::string& key : sweep.header.keys) {
      text += "," + cell_of(row.at("values").value(key, Json()));
    }
    text += "," + cell_of(row.at("verdict"));
    text += "," + csv_cell(fmt::format(
                      "{}", fmt::join(row.at("codes").get<std::vector<std::string>>(), " ")));
    text += "," + cell_of(row.at("message"));
    for (const std::string_view name : figure_names()) {
      text += "," + cell_of(row.at("figures").value(figure_key(name), Json()));
    }
    text += "," + cell_of(row.at("command")) + "\n";
  }
  return text;
}

Json sweep_json(const ShownSweep& sweep, int exit_code) {
  Json json;
  json["schema_version"] = schema_version;
  json["command"] = "sweep";
  json["exit_code"] = exit_code;
  json["scenario"] = sweep.header.scenario;
  json["settings"] = sweep.header.settings;
  json["keys"] = sweep.header.keys;
  json["cases"] = sweep.header.cases;
  json["done"] = sweep.done;
  json["shard"] = sweep.header.shard;
  json["shards"] = sweep.header.shards;
  json["rows"] = Json::array();
  for (const std::string* line : sweep.lines) {
    Json row = Json::parse(*line);
    Json values = Json::object();
    for (const auto& [key, text] : row.at("values").items()) {
      values[key] = value_json(text.get<std::string>());
    }
    row["values"] = std::move(values);
    json["rows"].push_back(std::move(row));
  }
  return json;
}

}  // namespace lockstep::cli
