// Phrases of a private dialect that readers had to decode. Docs, output, help and comments use the
// plain phrase beside each instead.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cctype>

#include "tests/tidy/source.hpp"

namespace lockstep::tidy::wording_test {

namespace {

struct Phrase {
  std::string_view not_this;  ///< lower case, words with one space between them
  std::string_view but_this;
};

// Only phrases that are wrong wherever they occur: a list of words cannot judge a sentence.
constexpr auto phrases = std::to_array<Phrase>({
    {"for ever", "forever"},
    {"held against", "compared with"},
    {"hold it against", "compare it with"},
    {"holds it against", "compares it with"},
    {"told so", "reported"},
    {"is told", "is reported"},
    {"are told", "are reported"},
    {"was told", "was reported"},
    {"were told", "were given"},
    {"tells apart", "distinguishes"},
    {"tells more", "says more"},
    {"tells why", "says why"},
    {"lockstep tells", "lockstep reports"},
    {"how-manieth", "Nth"},
    {"as often as wanted", "repeatable"},
    {"complete or not at all", "atomically"},
    {"stands twice", "is duplicated"},
    {"is no unit", "unknown unit"},
    {"what belongs together", "matching calls"},
    {"not belong together", "do not match"},
    {"belong together", "match"},
    {"not there yet", "not supported yet"},
    {"legal here", "expected one of"},
    {"nothing has bound", "is not defined"},
    {"they rest on", "they are based on"},
    {"that rest on", "based on"},
    {"figures rest on", "figures are based on"},
    {"rests on", "is based on"},
    {"in another order", "in a different order"},
    {"another number", "a different number"},
    {"logs another", "logs a different"},
    {"what brings", "how to install"},
    {"mended", "fixed"},
    {"mend the", "fix the"},
    {"made anew", "recreated"},
    {"a bug of ours", "an internal error"},
    {"for an outside reason", "for an external reason"},
    {"nothing is left to chance", "deterministic"},
    {"the worlds differ", "the real run differs from the simulation"},
    {"said in `basis`", "reported in `basis`"},
});

// "8 samples a step": a count of the first per one of the second.
constexpr auto rates = std::to_array<std::string_view>({
    "samples a step",    "samples a second", "samples a rank",     "tokens a second",
    "batches a rank",    "batches an epoch", "steps an epoch",     "steps a second",
    "transfers a step",  "process a rank",   "processes a node",   "thread a rank",
    "program a rank",    "process a device", "object a rank",      "ranks a node",
    "times a step",      "twice a step",     "once an epoch",      "bytes a second",
    "bytes an element",  "bytes a row",      "page faults a rank", "entry a sample",
    "entry a rank",      "row a sample",     "scores a sample",    "labels a sample",
    "key a member",      "finding a pair",   "finding a group",    "line a key",
    "line a case",       "file a strategy",  "invariant a file",   "suite a file",
    "connection a pair", "value a channel",  "collectives a key",  "us a step",
    "a device x",        "ms a step",        "ns an operation",    "time an operation",
});

/// Why a file may use such phrases: it quotes them.
struct Exception {
  std::string_view path;
  std::string_view reason;
};
constexpr auto exceptions = std::to_array<Exception>({
    {"tests/tidy/wording_test.cpp", "the list itself, and the planted offences"},
    {"tests/data/", "recordings of other programs, word for word"},
});

bool is_excepted(std::string_view path) {
  return std::any_of(exceptions.begin(), exceptions.end(),
                     [&](const Exception& exception) { return path.starts_with(exception.path); });
}

bool is_read_by_people(std::string_view path) {
  constexpr auto endings = std::to_array<std::string_view>({".md", ".cpp", ".hpp", ".yaml", ".py"});
  return path == "dev" || std::any_of(endings.begin(), endings.end(),
                                      [&](std::string_view end) { return path.ends_with(end); });
}

/// A text in lower case with one space between words, and the position that each letter had:
/// phrases also run over the end of a line, with its comment marks, and over two adjacent strings.
struct Flat {
  std::string text;
  std::vector<size_t> positions;
};

bool is_between_words(char letter) { return std::isspace(static_cast<unsigned char>(letter)) != 0; }

size_t skip_line_end(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && (is_between_words(text[end]) || text[end] == '/' ||
                               text[end] == '#' || text[end] == '"' || text[end] == '<')) {
    ++end;
  }
  return end;
}

Flat flat(std::string_view text) {
  Flat result;
  const auto add = [&](char letter, size_t at) {
    result.text += letter;
    result.positions.push_back(at);
  };
  for (size_t i = 0; i < text.size();) {
    const size_t next = text.find_first_not_of(" \t\"", i);
    const bool ends_line = next != std::string_view::npos && text[next] == '\n';
    if (ends_line || is_between_words(text[i])) {
      add(' ', i);
      i = ends_line ? skip_line_end(text, next) : skip_space(text, i);
      continue;
    }
    add(static_cast<char>(std::tolower(static_cast<unsigned char>(text[i]))), i);
    ++i;
  }
  return result;
}

Offences found_phrases(const Source& file) {
  if (!is_read_by_people(file.path) || is_excepted(file.path)) {
    return {};
  }
  Offences offences;
  const Flat words = flat(file.text);
  const auto look_for = [&](std::string_view phrase, std::string_view better) {
    for (size_t at = find_word(words.text, phrase); at != std::string::npos;
         at = find_word(words.text, phrase, at + 1)) {
      offences.push_back(place(file, words.positions[at]) + ": write \"" + std::string(better) +
                         "\", not \"" + std::string(phrase) + "\"");
    }
  };
  for (const Phrase& phrase : phrases) {
    look_for(phrase.not_this, phrase.but_this);
  }
  for (const std::string_view rate : rates) {
    look_for(rate, "per");
  }
  return offences;
}

}  // namespace

TEST_CASE("docs, output and comments use plain phrases") {
  for (const Source& file : text_files()) {
    expect_none(found_phrases(file));
  }
}

TEST_CASE("the rule of phrases sees each offence and its line") {
  for (const Phrase& phrase : phrases) {
    const Offences found = found_phrases({"docs/a.md", "One.\n" + std::string(phrase.not_this)});
    REQUIRE_FALSE(found.empty());
    CHECK(found.front().starts_with("docs/a.md:2: write \""));
  }
  for (const std::string_view rate : rates) {
    CHECK(found_phrases({"a.cpp", "// 8 " + std::string(rate) + "\n"}).size() == 1);
  }
}

TEST_CASE("the rule of phrases sees one over the end of a line or of a string") {
  CHECK(found_phrases({"a.cpp", "// It waits for\n/// ever.\n"}) ==
        Offences{"a.cpp:1: write \"forever\", not \"for ever\""});
  CHECK(found_phrases({"a.cpp", "f(\"It waits for \"\n  \"ever\");\n"}).size() == 1);
  CHECK(found_phrases({"a.md", "It waits For\never."}).size() == 1);
}

TEST_CASE("the rule of phrases leaves other words alone") {
  CHECK(found_phrases({"a.md", "for every rank, the rest only; takes a step, samples at rank 0"})
            .empty());
  CHECK(found_phrases({"tests/data/a.md", "for ever"}).empty());
  CHECK(found_phrases({"a.png", "for ever"}).empty());
}

TEST_CASE("every exception of the rule of phrases says why and is needed") {
  const std::vector<Source> files = text_files();
  for (const Exception& exception : exceptions) {
    CHECK_FALSE(exception.reason.empty());
    CHECK(std::any_of(files.begin(), files.end(),
                      [&](const Source& file) { return file.path.starts_with(exception.path); }));
  }
}

}  // namespace lockstep::tidy::wording_test
