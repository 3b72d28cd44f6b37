// Expectations that name a finding: its codes, level, place and ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/scenario/expectations/expectation_source.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "io/scenario/sections/sections.hpp"
#include "model/scenario/rank_selection.hpp"

namespace lockstep {
namespace {

constexpr size_t most_ranks_named = 65'536;

struct Word {
  std::string_view text;
  ExpectationKind kind;
  ExpectedLevel level;
};
constexpr auto words = std::to_array<Word>({
    {"finding", ExpectationKind::finding, ExpectedLevel::any},
    {"no_finding", ExpectationKind::no_finding, ExpectedLevel::any},
    {"warning", ExpectationKind::finding, ExpectedLevel::warning},
    {"note", ExpectationKind::finding, ExpectedLevel::note},
});

bool is_code(std::string_view text) {
  constexpr size_t length = 5;
  return text.size() == length && text.starts_with("LS") &&
         text.find_first_not_of("0123456789", 2) == std::string_view::npos;
}

/// The text up to the next blank; `rest` becomes what follows.
std::string_view take_word(std::string_view& rest) {
  const size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest = trimmed(rest.substr(end));
  return word;
}

std::optional<int64_t> rank_in(std::string_view digits) {
  const auto parsed = parse_int(trimmed(digits));
  const auto* rank = std::get_if<int64_t>(&parsed);
  return rank != nullptr && *rank >= 0 && *rank < maximum_ranks ? std::optional(*rank)
                                                                : std::nullopt;
}

/// "3", "1-7", "0, 2-3".
void read_ranks(const ExpectationSource& source, std::string_view text, Expectation& expectation) {
  std::string_view rest = text;
  while (true) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    const size_t dash = part.find('-');
    const std::optional<int64_t> first = rank_in(part.substr(0, dash));
    const std::optional<int64_t> last =
        dash == std::string_view::npos ? first : rank_in(part.substr(dash + 1));
    if (!first || !last || *last < *first ||
        static_cast<size_t>(*last - *first) > most_ranks_named) {
      source.fail(source.offset_of(part.empty() ? text : part),
                  fmt::format("`on ranks` takes ranks, not `{}`", trimmed(part)),
                  "write `on rank 0`, `on ranks 1-7` or `on ranks 0, 2-3`");
      return;
    }
    for (int64_t rank = *first; rank <= *last; ++rank) {
      expectation.on_ranks.push_back(rank);
    }
    if (comma == rest.size()) {
      return;
    }
    rest.remove_prefix(comma + 1);
  }
}

/// Takes `CODE or CODE`; false when a code is missing.
bool take_codes(const ExpectationSource& source, std::string_view word, std::string_view& rest,
                Expectation& expectation) {
  const std::string_view all = rest;
  while (true) {
    std::string_view code = take_word(rest);
    if (!expectation.codes.empty() && code == word) {
      code = take_word(rest);  // `finding LS101 or finding LS102`
    }
    if (!is_code(code)) {
      source.fail(source.offset_of(code.empty() ? all : code),
                  fmt::format("`{}` takes a code, not `{}`", word, code),
                  fmt::format("write `{} LS101`", word));
      return false;
    }
    check_code(source.reader, std::string(code), source.at(source.offset_of(code)));
    expectation.codes.emplace_back(code);
    if (!rest.starts_with("or ")) {
      return true;
    }
    take_word(rest);
  }
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return text;
}

bool read_finding_expectation(const ExpectationSource& source, std::string_view rest,
                              Expectation& expectation) {
  const std::string_view word = take_word(rest);
  const auto* known = std::ranges::find(words, word, &Word::text);
  if (known == words.end()) {
    return false;
  }
  expectation.kind = known->kind;
  expectation.level = known->level;
  if (rest.empty()) {
    source.fail(0, fmt::format("`{}` takes a code, not ``", word),
                fmt::format("write `{} LS101`", word));
    return true;
  }
  if (!take_codes(source, word, rest, expectation)) {
    return true;
  }
  if (rest.starts_with("at ")) {
    take_word(rest);
    const size_t end = std::min(rest.find(" on rank"), rest.size());
    expectation.at = ExpectedPlace{std::string(trimmed(rest.substr(0, end))), {}};
    rest = trimmed(rest.substr(end));
  }
  if (rest.starts_with("on rank ") || rest.starts_with("on ranks ")) {
    take_word(rest);
    take_word(rest);
    read_ranks(source, rest, expectation);
    return true;
  }
  if (!rest.empty()) {
    source.fail(source.offset_of(rest), fmt::format("`{}` cannot follow a code", rest),
                "write `finding LS101 or LS102`, `finding LS102 at data.train.batches`, "
                "`finding LS101 on ranks 1-7`");
  }
  return true;
}

}  // namespace lockstep
