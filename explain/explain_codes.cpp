// The list of all codes: level, title, cause and fix, from the pages that explain them.
#include "explain/explain_codes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "explain/explain.hpp"
#include "model/scenario/finding_codes.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t section_margin = 7;  // the width of "What   "

struct CodeLevels {
  std::string_view code;
  std::vector<Level> levels;
};

// Codes that are not here are always errors.
const std::vector<CodeLevels>& other_levels() {
  static const std::vector<CodeLevels> levels = {
      {"LS103", {Level::error, Level::warning}},
      {"LS106", {Level::error, Level::warning}},
      {"LS108", {Level::error, Level::warning}},
      {"LS109", {Level::error, Level::warning}},
      {"LS301", {Level::error, Level::note}},
      {"LS302", {Level::error, Level::warning, Level::note}},
      {"LS304", {Level::error, Level::warning}},
      {"LS305", {Level::error, Level::warning}},
      {"LS306", {Level::error, Level::warning}},
      {"LS309", {Level::warning}},
      {"LS312", {Level::error, Level::warning}},
      {"LS401", {Level::error, Level::warning}},
      {"LS403", {Level::warning}},
      {"LS404", {Level::warning}},
      {"LS501", {Level::error, Level::warning}},
      {"LS502", {Level::error, Level::warning}},
  };
  return levels;
}

// The lines of one section of a page, as one paragraph; what is indented further keeps its lines.
std::string section(std::string_view page, std::string_view name) {
  std::string text;
  bool inside = false;
  for (size_t begin = 0; begin < page.size();) {
    const size_t end = std::min(page.find('\n', begin), page.size());
    const std::string_view line = page.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && line.front() != ' ') {
      inside = line.substr(0, line.find(' ')) == name;
    }
    if (inside && line.size() > section_margin) {
      const std::string_view rest = line.substr(section_margin);
      const bool indented = rest.front() == ' ';
      text += (text.empty() ? "" : indented ? "\n" : " ") + std::string(rest);
    }
  }
  return text;
}

std::string text_of(const std::vector<Level>& levels) {
  std::string text;
  for (const Level level : levels) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(level));
  }
  return text;
}

}  // namespace

std::vector<Level> levels_of(std::string_view code) {
  if (std::ranges::find(finding_codes, code) == finding_codes.end()) {
    return {};
  }
  const auto found = std::ranges::find(other_levels(), code, &CodeLevels::code);
  return found == other_levels().end() ? std::vector{Level::error} : found->levels;
}

std::string codes_text() {
  std::string text;
  for (const Page* page : finding_pages()) {
    text +=
        fmt::format("{}  {:<21}  {}\n", page->name, text_of(levels_of(page->name)), page->title);
  }
  return text + "\n`lockstep explain CODE` has the cause, the fix and the smallest scenario.\n";
}

Json codes_json() {
  Json json = {{"schema_version", schema_version}, {"command", "explain"}};
  json["codes"] = Json::array();
  for (const Page* page : finding_pages()) {
    Json levels = Json::array();
    for (const Level level : levels_of(page->name)) {
      levels.push_back(name_of(level));
    }
    json["codes"].push_back({{"code", page->name},
                             {"level", levels.front()},
                             {"levels", levels},
                             {"title", page->title},
                             {"cause", section(page->text, "What")},
                             {"fix", section(page->text, "Fix")}});
  }
  return json;
}

}  // namespace lockstep::cli
