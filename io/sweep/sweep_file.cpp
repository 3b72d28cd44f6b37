#include "io/sweep/sweep_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/file/regular_file.hpp"
#include "io/scenario/reader/scalar.hpp"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

constexpr int format_version = 1;

// Bytes that are no UTF-8 are replaced.
std::string text_of_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json json_of_figure(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::integer: return value.integer();
    case Value::Kind::floating:
      return std::isfinite(value.floating()) ? Json(value.floating()) : Json(nullptr);
    case Value::Kind::text: return value.text();
    case Value::Kind::quantity:
      return value.quantity().kind == QuantityKind::time
                 ? Json(seconds(Time(value.quantity().count)))
                 : Json(value.quantity().count);
    default: return nullptr;
  }
}

Value figure_of(const Json& json, std::string_view name) {
  if (json.is_string()) {
    return Value(json.get<std::string>());
  }
  if (!json.is_number()) {
    return {};
  }
  const Value like = figure_stand_in(name, 0);
  if (!like.is(Value::Kind::quantity)) {
    return json.is_number_integer() && !like.is(Value::Kind::floating) ? Value(json.get<int64_t>())
                                                                       : Value(json.get<double>());
  }
  if (like.quantity().kind != QuantityKind::time) {
    return Value(Bytes(json.get<int64_t>()));
  }
  const double count = json.get<double>() * static_cast<double>(picoseconds_per_second);
  const bool fits = count < static_cast<double>(Time::max().count());
  return Value(fits ? Time(std::llround(count)) : Time::max());
}

std::string list_of(const std::vector<std::string>& items) {
  return items.empty() ? "none" : fmt::format("{}", fmt::join(items, ", "));
}

std::string differing(const std::string& what, const std::string& there, const std::string& here) {
  return there == here ? "" : fmt::format("{}: {} there, {} here", what, there, here);
}

}  // namespace

bool is_in_shard(const SweepHeader& header, int64_t number) {
  return (number - 1) % header.shards == header.shard - 1;
}

std::string difference_of(const SweepHeader& there, const SweepHeader& here) {
  for (const std::string& text :
       {differing("the version of lockstep", there.version, here.version),
        differing("the scenario", there.scenario, here.scenario),
        differing("settings", list_of(there.settings), list_of(here.settings)),
        differing("the varied keys", list_of(there.keys), list_of(here.keys))}) {
    if (!text.empty()) {
      return text;
    }
  }
  if (there.values.size() != here.values.size()) {
    return "one is a grid of --vary, the other a list of --vary-file";
  }
  for (size_t index = 0; index < here.values.size() && index < here.keys.size(); ++index) {
    const std::string text = differing(fmt::format("the values of `{}`", here.keys[index]),
                                       list_of(there.values[index]), list_of(here.values[index]));
    if (!text.empty()) {
      return text;
    }
  }
  if (there.digest_of_cases != here.digest_of_cases || there.cases != here.cases) {
    return fmt::format("the list of cases: {} there, {} here, and not the same ones", there.cases,
                       here.cases);
  }
  return there.digest == here.digest
             ? ""
             : "the content of the scenario or of a file that it reads has changed";
}

std::string line_of(const SweepHeader& header) {
  Json json;
  json["sweep"] = format_version;
  json["version"] = header.version;
  json["scenario"] = header.scenario;
  json["digest"] = header.digest;
  json["settings"] = header.settings;
  json["keys"] = header.keys;
  json["values"] = header.values;
  json["digest_of_cases"] = header.digest_of_cases;
  json["cases"] = header.cases;
  json["shard"] = header.shard;
  json["shards"] = header.shards;
  return text_of_line(json);
}

std::optional<SweepHeader> header_of(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("sweep")) {
    return std::nullopt;
  }
  try {
    SweepHeader header;
    json.at("version").get_to(header.version);
    json.at("scenario").get_to(header.scenario);
    json.at("digest").get_to(header.digest);
    json.at("settings").get_to(header.settings);
    json.at("keys").get_to(header.keys);
    json.at("values").get_to(header.values);
    json.at("digest_of_cases").get_to(header.digest_of_cases);
    json.at("cases").get_to(header.cases);
    json.at("shard").get_to(header.shard);
    json.at("shards").get_to(header.shards);
    const bool is_known = json.at("sweep") == format_version;
    const bool is_sane = header.cases >= 0 && header.shard >= 1 && header.shard <= header.shards;
    return is_known && is_sane ? std::optional(header) : std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string line_of(const SweepRow& row) {
  Json json;
  json["case"] = row.number;
  json["values"] = Json::object();
  for (const auto& [key, text] : row.values) {
    json["values"][key] = text;
  }
  json["verdict"] = row.verdict;
  json["codes"] = row.codes;
  json["message"] = row.message;
  json["command"] = row.command;
  json["figures"] = Json::object();
  for (const auto& [name, value] : row.figures) {
    json["figures"][figure_key(name)] = json_of_figure(value);
  }
  return text_of_line(json);
}

std::optional<SweepRow> row_of(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) {
    return std::nullopt;
  }
  try {
    SweepRow row;
    json.at("case").get_to(row.number);
    for (const auto& [key, text] : json.at("values").items()) {
      row.values.emplace_back(key, text.get<std::string>());
    }
    json.at("verdict").get_to(row.verdict);
    json.at("codes").get_to(row.codes);
    json.at("message").get_to(row.message);
    json.at("command").get_to(row.command);
    const Json& figures = json.at("figures");
    for (const std::string_view name : figure_names()) {
      const auto found = figures.find(figure_key(name));
      if (found != figures.end() && !found->is_null()) {
        row.figures.emplace_back(name, figure_of(*found, name));
      }
    }
    return row;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

namespace {

// What is wrong with a complete line that follows the first; empty: nothing.
std::string add_line(const std::string& line, SweepFile& file) {
  const std::optional<SweepRow> row = row_of(line);
  if (!row || row->number < 1 || row->number > file.header->cases) {
    return "is no row of this sweep";
  }
  if (!is_in_shard(*file.header, row->number)) {
    return fmt::format("is case {}, which is not of shard {}/{}", row->number, file.header->shard,
                       file.header->shards);
  }
  file.is_in_order =
      file.is_in_order && (file.lines.empty() || file.lines.rbegin()->first < row->number);
  const auto [known, is_new] = file.lines.try_emplace(row->number, line);
  return is_new || known->second == line
             ? ""
             : fmt::format("differs from an earlier row of case {}", row->number);
}

}  // namespace

SweepFile read_sweep_file(const std::string& path) {
  SweepFile file;
  if (const std::string lack = why_not_regular(path); !lack.empty()) {
    file.fault = lack;
    return file;
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    file.fault = "the file cannot be opened for reading";
    return file;
  }
  int64_t number = 0;
  for (std::string line; file.fault.empty() && std::getline(stream, line);) {
    ++number;
    if (stream.eof()) {  // no line feed: the writer was stopped within the line
      file.is_torn = true;
      break;
    }
    file.whole_bytes += static_cast<int64_t>(line.size()) + 1;
    if (number == 1) {
      file.header = header_of(line);
      file.fault = file.header ? "" : "line 1 is not the first line of a sweep of this version";
      continue;
    }
    const std::string fault = add_line(line, file);
    file.fault = fault.empty() ? "" : fmt::format("line {} {}", number, fault);
  }
  if (stream.bad()) {
    file.fault = "the file cannot be read to its end";
  }
  return file;
}

}  // namespace lockstep
