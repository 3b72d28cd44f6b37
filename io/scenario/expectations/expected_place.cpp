#include "io/scenario/expectations/expected_place.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/names/spelling.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "model/scenario/expressions_of.hpp"

namespace lockstep {
namespace {

using Lines = ExpectedPlace::Lines;

void add_line(const SourcePlace& place, std::vector<Lines>& lines) {
  const auto known = std::ranges::find(lines, place.file, &Lines::file);
  if (known == lines.end()) {
    lines.push_back({place.file, place.line, place.line});
    return;
  }
  known->first = std::min(known->first, place.line);
  known->last = std::max(known->last, place.line);
}

void add_lines(const Reader& reader, const Node& node, std::vector<Lines>& lines) {
  add_line(reader.place(node), lines);
  for (const NodePtr& item : node.items) {
    add_lines(reader, *item, lines);
  }
  for (const Entry& entry : node.entries) {
    add_line(reader.place(entry.mark), lines);
    add_lines(reader, *entry.value, lines);
  }
}

/// What `step` names in a map or list; null: nothing. `key` becomes its entry, where it has one.
const Node* inner(const Node& node, std::string_view step, const Entry*& key) {
  key = nullptr;
  if (node.kind == Node::Kind::map) {
    key = node.find(step);
    return key == nullptr ? nullptr : key->value.get();
  }
  const auto parsed = parse_int(step);
  const auto* index = std::get_if<int64_t>(&parsed);
  const bool inside = node.kind == Node::Kind::list && index != nullptr && *index >= 0 &&
                      static_cast<size_t>(*index) < node.items.size();
  return inside ? node.items[static_cast<size_t>(*index)].get() : nullptr;
}

/// The lines of `data.train.batches`; empty where the scenario does not have it.
std::vector<Lines> lines_of_key(const Reader& reader, const Node& root, std::string_view path) {
  const Node* node = &root;
  const Entry* key = nullptr;
  for (std::string_view rest = path; node != nullptr && !rest.empty();) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    node = inner(*node, rest.substr(0, dot), key);
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  std::vector<Lines> lines;
  if (node != nullptr && !path.empty()) {
    if (key != nullptr) {
      add_line(reader.place(key->mark), lines);
    }
    add_lines(reader, *node, lines);
  }
  return lines;
}

bool is_line_of_file(std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string_view digits =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos &&
         (text.substr(0, colon).ends_with(".yaml") || text.substr(0, colon).ends_with(".yml") ||
          text.substr(0, colon).ends_with(".json"));
}

std::vector<std::string> places_of_statements(const Scenario& scenario) {
  std::vector<std::string> places;
  if (scenario.program) {
    for_each_statement(*scenario.program, [&](const Statement& statement) {
      if (statement.at) {
        places.push_back(statement.at->value);
      }
    });
  }
  return places;
}

}  // namespace

void find_expected_places(Reader& reader, const Node& root, Scenario& scenario) {
  for (Expectation& expectation : scenario.expectations) {
    if (!expectation.at) {
      continue;
    }
    const std::string& text = expectation.at->text;
    expectation.at->lines = lines_of_key(reader, root, text);
    const std::vector<std::string> places = places_of_statements(scenario);
    if (!expectation.at->lines.empty() || is_line_of_file(text) ||
        std::ranges::count(places, text) != 0) {
      continue;
    }
    const std::vector<std::string_view> legal(places.begin(), places.end());
    const std::string nearest = nearest_spelling(text, legal);
    reader.fail_at(expectation.place, fmt::format("no key, line or statement is at `{}`", text),
                   nearest.empty()
                       ? "write a key that the scenario has (data.train.batches), a line "
                         "(scenario.yaml:17) or the `at` of a statement"
                       : fmt::format("did you mean `{}`?", nearest));
  }
}

}  // namespace lockstep
