#include "io/sweep/sweep_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/file/regular_file.hpp"
#include "io/sweep/sweep_fields.hpp"

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

std::string list_of(const std::vector<std::string>& items) {
  return items.empty() ? "none" : fmt::format("{}", fmt::join(items, ", "));
}

// What of a header cannot be; empty: nothing.
std::string fault_of(const SweepHeader& header) {
  if (header.keys.empty()) {
    return "is not the first line of a sweep: `keys` is empty";
  }
  if (std::max(header.cases, header.shards) > sweep_cases_max) {
    return fmt::format("is not the first line of a sweep: more than {} cases or shards",
                       sweep_cases_max);
  }
  if (header.values.empty()) {
    return "";
  }
  int64_t cases = header.values.size() == header.keys.size() ? 1 : 0;
  for (const std::vector<std::string>& values : header.values) {
    const bool is_over = __builtin_mul_overflow(cases, static_cast<int64_t>(values.size()), &cases);
    cases = is_over ? 0 : cases;
  }
  return cases == header.cases
             ? ""
             : "is not the first line of a sweep: `keys`, `values` and `cases` disagree";
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

std::variant<SweepHeader, std::string> header_of(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("sweep")) {
    return "is not the first line of a sweep";
  }
  try {
    const SweepFields fields(json);
    if (const int64_t version = fields.whole("sweep", 1); version != format_version) {
      return fmt::format("is of format {}, and this program reads {}", version, format_version);
    }
    SweepHeader header;
    header.version = fields.text("version");
    header.scenario = fields.text("scenario");
    header.digest = fields.text("digest");
    header.settings = fields.texts("settings");
    header.keys = fields.texts("keys");
    header.values = fields.lists("values");
    header.digest_of_cases = fields.text("digest_of_cases");
    header.cases = fields.whole("cases", 0);
    header.shard = fields.whole("shard", 1);
    header.shards = fields.whole("shards", header.shard);
    const std::string fault = fault_of(header);
    return fault.empty() ? std::variant<SweepHeader, std::string>(header) : fault;
  } catch (const SweepFieldError& error) {
    return fmt::format("is not the first line of a sweep: {}", error.what());
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

std::variant<SweepRow, std::string> row_of(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) {
    return "is no object of JSON";
  }
  try {
    const SweepFields fields(json);
    SweepRow row;
    row.number = fields.whole("case", 1);
    row.values = fields.texts_by_key("values");
    row.verdict = fields.text("verdict");
    row.codes = fields.texts("codes");
    row.message = fields.text("message");
    row.command = fields.text("command");
    row.figures = fields.figures("figures");
    return row;
  } catch (const SweepFieldError& error) {
    return error.what();
  }
}

namespace {

// What is wrong with a complete line that follows the first; empty: nothing.
std::string add_line(const std::string& line, SweepFile& file) {
  const std::variant<SweepRow, std::string> read = row_of(line);
  if (const auto* fault = std::get_if<std::string>(&read)) {
    return fmt::format("is no row of this sweep: {}", *fault);
  }
  const auto* row = std::get_if<SweepRow>(&read);
  if (row->number > file.header->cases) {
    return fmt::format("is no row of this sweep: `case` is {}, and there are {}", row->number,
                       file.header->cases);
  }
  for (const auto& [key, text] : row->values) {
    if (std::ranges::count(file.header->keys, key) == 0) {
      return fmt::format("is no row of this sweep: it does not vary `{}`", key);
    }
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

void read_first(const std::string& line, SweepFile& file) {
  std::variant<SweepHeader, std::string> read = header_of(line);
  if (auto* header = std::get_if<SweepHeader>(&read)) {
    file.header = std::move(*header);
  } else {
    file.fault = fmt::format("line 1 {}", std::get<std::string>(read));
  }
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
      read_first(line, file);
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
