#include "cli/render/excerpt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "model/core/characters.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t columns_max = 96;

std::optional<std::string_view> line_of(std::string_view text, int line) {
  for (int passed = 1; passed < line; ++passed) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

struct Span {
  size_t begin = 0;
  size_t end = 0;
};

Span span_of(std::string_view line, const Mark& mark) {
  const size_t begin = std::min(line.size(), static_cast<size_t>(std::max(mark.column, 1) - 1));
  if (!mark.underlined.empty()) {
    const size_t found = line.find(mark.underlined, begin);
    if (found != std::string_view::npos) {
      return {found, found + mark.underlined.size()};
    }
  }
  size_t end = begin;
  while (end < line.size() && is_word(line[end])) {
    ++end;
  }
  return {begin, std::max(end, begin + 1)};
}

// A mark far behind the beginning of a line is shown with what is before it, not with the
// beginning.
size_t first_column_of(std::string_view line, const Span& span) {
  constexpr size_t before = 60;
  if (span.end <= columns_max) {
    return 0;
  }
  size_t begin = span.begin > before ? span.begin - before : 0;
  while (begin < line.size() && !begins_character(line[begin])) {
    ++begin;
  }
  return begin;
}

}  // namespace

std::string excerpt(const std::string& file, std::vector<Mark> marks, const Sources& sources,
                    const Style& style) {
  const auto source = sources.find(file);
  if (source == sources.end() || marks.empty()) {
    return "";
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& left, const Mark& right) { return left.line < right.line; });
  const size_t width = std::max<size_t>(2, std::to_string(marks.back().line).size());
  const std::string margin(width, ' ');
  std::string out = margin + " |\n";
  int shown = 0;
  size_t cut = 0;  // columns of the shown line that are left out before the mark
  for (const Mark& mark : marks) {
    const std::optional<std::string_view> line = line_of(source->second, mark.line);
    if (!line) {
      continue;
    }
    const Span span = span_of(*line, mark);
    if (mark.line != shown) {
      cut = first_column_of(*line, span);
      std::string text(line->substr(cut));
      std::replace(text.begin(), text.end(), '\t', ' ');
      if (text.size() > columns_max) {
        text = text.substr(0, columns_max) + "..";
      }
      if (shown != 0 && mark.line > shown + 1) {
        out += margin + " :\n";
      }
      out += fmt::format("{:>{}} | {}\n", mark.line, width, text);
    }
    shown = mark.line;
    const size_t begin = std::clamp(span.begin, cut, cut + columns_max);
    const size_t length = std::clamp(span.end, begin, cut + columns_max + 1) - begin;
    const std::string marked(std::max<size_t>(1, length), mark.subject ? '^' : '-');
    const std::string under = marked + (mark.label.empty() ? "" : " " + mark.label);
    out += fmt::format("{} | {}{}\n", margin,
                       std::string(characters(line->substr(cut, begin - cut)), ' '),
                       mark.subject ? style.error(under) : style.note(under));
  }
  return out + margin + " |\n";
}

}  // namespace lockstep::cli
