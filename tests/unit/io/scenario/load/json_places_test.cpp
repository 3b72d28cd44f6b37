#include "io/scenario/load/json_places.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace json_places_test {

namespace {

void expect_at(const SourcePlace& place, int line, int column) {
  CHECK(place.file == "ds.json");
  CHECK(place.line == line);
  CHECK(place.column == column);
}

}  // namespace

// Lines and columns count from 1; a key begins behind its quote.
TEST_CASE("keys and values of a JSON object have their places") {
  const std::string text =
      "{\n"
      "  \"fp16\": {\"enabled\": true},\n"
      "  \"steps\": [1, {\"inner\": 2}],\n"
      "\t\"zero_optimization\": {\n"
      "    \"stage\" : 2\n"
      "  }\n"
      "}\n";
  const JsonPlaces places("ds.json", text);
  expect_at(places.of_key({"fp16"}), 2, 4);
  expect_at(places.of_value({"fp16"}), 2, 11);
  expect_at(places.of_key({"fp16", "enabled"}), 2, 13);
  expect_at(places.of_key({"steps"}), 3, 4);
  expect_at(places.of_key({"zero_optimization", "stage"}), 5, 6);
  expect_at(places.of_value({"zero_optimization", "stage"}), 5, 15);
}

TEST_CASE("escapes, braces within texts and a byte order mark do not shift places") {
  const JsonPlaces places("ds.json", "\xef\xbb\xbf{\"a\": \"}\\\"{\", \"b\\u0063\": 1}");
  expect_at(places.of_key({"bc"}), 1, 19);
  expect_at(places.of_value({"bc"}), 1, 29);
}

TEST_CASE("the first key that its object has twice has a place, entries of lists apart") {
  const JsonPlaces places("ds.json",
                          "{\"list\": [{\"a\": 1}, {\"a\": 2}],\n"
                          " \"b\": {\"stage\": 2,\n"
                          "  \"st\\u0061ge\": 3}, \"b\": 1}");
  REQUIRE(places.of_repeated_key());
  expect_at(*places.of_repeated_key(), 3, 4);
  CHECK_FALSE(JsonPlaces("ds.json", "{\"list\": [{\"a\": 1}, {\"a\": 2}]}").of_repeated_key());
}

TEST_CASE("what is not there has the place of the object") {
  expect_at(JsonPlaces("ds.json", "{\"a\": 1}").of_key({"b"}), 1, 1);
}

}  // namespace json_places_test
