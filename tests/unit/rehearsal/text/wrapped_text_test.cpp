#include "rehearsal/text/wrapped_text.hpp"

#include <catch2/catch.hpp>

using lockstep::cli::wrapped;
using Lines = std::vector<std::string>;

TEST_CASE("a text is broken between words, and a long word stays whole") {
  CHECK(wrapped("", 5) == Lines{""});
  CHECK(wrapped("one two", 7) == Lines{"one two"});
  CHECK(wrapped("one two", 6) == Lines{"one", "two"});
  CHECK(wrapped("one two three", 8) == Lines{"one two", "three"});
  CHECK(wrapped("incomprehensible is", 6) == Lines{"incomprehensible", "is"});
  CHECK(wrapped("is incomprehensible", 6) == Lines{"is", "incomprehensible"});
}
