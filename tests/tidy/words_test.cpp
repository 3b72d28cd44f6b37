// Words that promise work instead of doing it, or that name one person's machine.
#include <catch2/catch.hpp>

#include "tests/tidy/source.hpp"

namespace lockstep::tidy::words_test {

namespace {

// Put together from parts, so that this file does not offend itself.
std::vector<std::string> forbidden_words() {
  return {std::string("TO") + "DO", std::string("FIX") + "ME", std::string("/wo") + "rk/"};
}

bool stands_alone(std::string_view text, size_t at, size_t size) {
  return (at == 0 || !is_word_letter(text[at - 1]) || !is_word_letter(text[at])) &&
         (at + size == text.size() || !is_word_letter(text[at + size]) ||
          !is_word_letter(text[at + size - 1]));
}

Offences found_words(const Source& file) {
  Offences offences;
  for (const std::string& word : forbidden_words()) {
    for (size_t at = file.text.find(word); at != std::string::npos;
         at = file.text.find(word, at + 1)) {
      if (stands_alone(file.text, at, word.size())) {
        offences.push_back(place(file, at) + ": the word " + word);
      }
    }
  }
  return offences;
}

}  // namespace

TEST_CASE("no text file holds a forbidden word") {
  for (const Source& file : text_files()) {
    expect_none(found_words(file));
  }
}

TEST_CASE("the rule of words sees an offence and its line") {
  for (const std::string& word : forbidden_words()) {
    CHECK(found_words({"a.md", "one\n# " + word + ": two\n"}) ==
          Offences{"a.md:2: the word " + word});
  }
  CHECK(found_words({"a.md", "a MASTODON\n"}).empty());
}

}  // namespace lockstep::tidy::words_test
