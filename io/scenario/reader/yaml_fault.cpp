#include "io/scenario/reader/yaml_fault.hpp"
#include "io/scenario/reader/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

struct Bracket {
  char kind = '[';
  int line = 1;
  int column = 1;
};

char closing_of(char open) { return open == '[' ? ']' : '}'; }

/// Walks over a text bracket by bracket, past comments and quoted texts.
class BracketScan {
 public:
  BracketScan(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::optional<Diagnostic> run() {
    for (; at_ < text_.size() && !fault_; advance()) {
      const char letter = text_[at_];
      if (letter == '#' && (at_ == 0 || is_blank(text_[at_ - 1]))) {
        skip_comment();
      } else if ((letter == '"' || letter == '\'') && begins_value_) {
        skip_quoted(letter);
      } else if ((letter == '[' || letter == '{') && (begins_value_ || !open_.empty())) {
        open_.push_back({letter, line_, column_});
      } else if ((letter == ']' || letter == '}') && !open_.empty()) {
        close(letter);
      }
    }
    if (!fault_ && !open_.empty()) {
      const Bracket& last = open_.back();
      fault_ = at(last, fmt::format("the `{}` is never closed", last.kind),
                  fmt::format("close it with `{}`", closing_of(last.kind)));
    }
    return fault_;
  }

 private:
  static bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\n'; }

  // A bracket, brace or quote means something only where a value begins.
  void advance() {
    const char letter = text_[at_++];
    ++column_;
    if (letter == '\n') {
      ++line_;
      column_ = 1;
      begins_value_ = true;
    } else if (!is_blank(letter)) {
      begins_value_ = std::string_view(":,-?[{").find(letter) != std::string_view::npos;
    }
  }

  void skip_comment() {
    while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
      ++at_;
    }
  }

  // Moves past the text, onto its closing quote.
  void skip_quoted(char quote) {
    for (advance(); at_ < text_.size() && text_[at_] != quote; advance()) {
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) {
        advance();
      }
    }
    if (at_ == text_.size()) {
      --at_;
    }
  }

  void close(char letter) {
    const Bracket& last = open_.back();
    const char wanted = closing_of(last.kind);
    if (letter != wanted) {
      fault_ = at({letter, line_, column_},
                  fmt::format("`{}` cannot close the `{}` of line {}, column {}", letter, last.kind,
                              last.line, last.column),
                  fmt::format("write `{}`", wanted));
    }
    open_.pop_back();
  }

  Diagnostic at(const Bracket& bracket, std::string message, std::string remedy) const {
    return {{name_, bracket.line, bracket.column}, 1, std::move(message), std::move(remedy)};
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
  bool begins_value_ = true;
  std::vector<Bracket> open_;
  std::optional<Diagnostic> fault_;
};

/// The first tab in the indentation of a line up to `last_line`.
std::optional<Diagnostic> find_tab(std::string_view text, const std::string& name, int last_line) {
  int line = 1;
  for (size_t begin = 0; begin < text.size() && line <= last_line; ++line) {
    const size_t stop = std::min(text.find_first_not_of(" \t", begin), text.size());
    const size_t tab = text.substr(begin, stop - begin).find('\t');
    const bool indents = stop < text.size() && text[stop] != '\n' && text[stop] != '#';
    if (tab != std::string_view::npos && indents) {
      return Diagnostic{{name, line, static_cast<int>(tab) + 1},
                        1,
                        "this line is indented by a tab",
                        "use spaces: replace the tab by two spaces"};
    }
    const size_t end = text.find('\n', begin);
    begin = end == std::string_view::npos ? text.size() : end + 1;
  }
  return std::nullopt;
}

bool says_nothing(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \r");
  return begin == std::string_view::npos || line[begin] == '#';
}

size_t indentation_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

/// A line that is indented like none of the maps and lists that it could continue.
std::optional<Diagnostic> find_indentation(std::string_view text, const std::string& name,
                                           int line) {
  const std::string_view wrong = line_of(text, line);
  const size_t indentation = indentation_of(wrong);
  std::vector<size_t> open;  // of the line before and those around it, the innermost first
  for (int above = line - 1; above > 0; --above) {
    const std::string_view other = line_of(text, above);
    if (says_nothing(other)) {
      continue;
    }
    const size_t columns = indentation_of(other);
    if (open.empty() || columns < open.back()) {
      open.push_back(columns);
      const size_t dash = other.find_first_not_of("- ", columns);
      if (other[columns] == '-' && dash != std::string_view::npos && open.size() == 1) {
        open.insert(open.begin(), dash);  // keys continue what begins behind the dash
      }
    }
  }
  if (open.empty() || std::ranges::count(open, indentation) != 0) {
    return std::nullopt;
  }
  std::string expected;
  for (const size_t columns : open) {
    expected += fmt::format("{}{}", expected.empty() ? "" : " or ", columns);
  }
  return Diagnostic{
      {name, line, static_cast<int>(indentation) + 1},
      1,
      fmt::format("this line is indented by {}, unlike any line that it could belong to",
                  indentation),
      fmt::format("indent it by {} columns, as the lines above", expected)};
}

/// `trainer {..}`: a word, blanks and a bracket, in this line.
std::optional<Diagnostic> find_missing_colon(std::string_view text, const std::string& name,
                                             int line) {
  const std::string_view here = line_of(text, line);
  const size_t begin = std::min(here.find_first_not_of(" -"), here.size());
  const size_t end = std::min(here.find_first_of(" :", begin), here.size());
  const size_t next = here.find_first_not_of(' ', end);
  const bool brackets = next != std::string_view::npos && (here[next] == '{' || here[next] == '[');
  if (end == begin || !brackets || here[end] != ' ') {
    return std::nullopt;
  }
  const std::string_view word = here.substr(begin, end - begin);
  return Diagnostic{{name, line, static_cast<int>(begin) + 1},
                    static_cast<int>(word.size()),
                    fmt::format("a colon is missing after `{}`", word),
                    fmt::format("write {}: {}..", word, here[next])};
}

}  // namespace

std::optional<Diagnostic> find_bracket_fault(std::string_view text, const std::string& name) {
  return BracketScan(text, name).run();
}

Diagnostic explain_yaml_fault(std::string_view text, const std::string& name, int line, int column,
                              const std::string& message) {
  if (const auto tab = find_tab(text, name, line)) {
    return *tab;
  }
  if (const auto bracket = find_bracket_fault(text, name)) {
    return *bracket;
  }
  if (const auto colon = find_missing_colon(text, name, line)) {
    return *colon;
  }
  if (message.starts_with("end of")) {  // "end of map not found"
    if (const auto indentation = find_indentation(text, name, line)) {
      return *indentation;
    }
  }
  return {{name, line, column},
          1,
          fmt::format("this is not valid YAML: {}", message),
          "inside braces and brackets, quote values that hold a comma, a bracket or a colon"};
}

}  // namespace lockstep
