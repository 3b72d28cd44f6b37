#include "io/scenario/reader/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "model/core/characters.hpp"

namespace lockstep {
namespace {

/// A long line (JSON is often one) is cut to a window around the column.
struct Excerpt {
  std::string text;
  size_t indent = 0;
  size_t width = 1;
};

Excerpt excerpt(std::string_view line, int column, int length) {
  constexpr size_t before = 60;
  constexpr size_t after = 36;
  constexpr size_t whole = before + after;  // a line that is no longer is not cut
  size_t at = std::min(line.size(), static_cast<size_t>(std::max(column, 1) - 1));
  const auto inside_character = [&](size_t position) {
    return position < line.size() && !begins_character(line[position]);
  };
  size_t begin = at > before && line.size() > whole ? at - before : 0;
  while (inside_character(begin)) {
    ++begin;
  }
  size_t end = line.size() <= whole ? line.size() : std::min(line.size(), at + after);
  while (inside_character(end)) {
    ++end;
  }
  at = std::max(at, begin);
  const size_t last = std::min(end, at + static_cast<size_t>(std::max(length, 1)));
  std::string text(line.substr(begin, end - begin));
  std::replace(text.begin(), text.end(), '\t', ' ');
  return {std::move(text), characters(line.substr(begin, at - begin)),
          std::max<size_t>(1, characters(line.substr(at, last - at)))};
}

void render_one(std::string& out, const Diagnostic& diagnostic, const Sources& sources) {
  const SourcePlace& place = diagnostic.place;
  out += fmt::format("error: {}\n", diagnostic.message);
  if (place.line == 0) {
    out += fmt::format("  --> {}\n", place.file);
  } else {
    out += fmt::format("  --> {}:{}:{}\n", place.file, place.line, place.column);
  }
  const std::string number = place.line > 0 ? std::to_string(place.line) : "";
  const std::string margin(std::max<size_t>(number.size(), 2), ' ');
  const auto source = sources.find(place.file);
  if (place.line > 0 && source != sources.end()) {
    const Excerpt shown =
        excerpt(line_of(source->second, place.line), place.column, diagnostic.length);
    out += fmt::format("{} |\n{:>{}} | {}\n", margin, number, margin.size(), shown.text);
    out += fmt::format("{} | {}{}\n", margin, std::string(shown.indent, ' '),
                       std::string(shown.width, '^'));
  }
  if (!diagnostic.remedy.empty()) {
    out += fmt::format("{} = {}\n", margin, diagnostic.remedy);
  }
}

}  // namespace

std::string_view line_of(std::string_view text, int line) {
  for (int passed = 1; passed < line; ++passed) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      return {};
    }
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

std::string render(const std::vector<Diagnostic>& diagnostics, const Sources& sources) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    render_one(out, diagnostic, sources);
    out += '\n';
  }
  if (!diagnostics.empty()) {
    out += fmt::format("{} error{}\n", diagnostics.size(), diagnostics.size() == 1 ? "" : "s");
  }
  return out;
}

}  // namespace lockstep
