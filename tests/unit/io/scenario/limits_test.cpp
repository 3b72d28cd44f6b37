#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/unit/io/scenario/memory_files.hpp"

namespace lockstep::limits_test {

using test::load_text;

namespace {

std::string first_message(const LoadedScenarios& loaded) {
  REQUIRE_FALSE(loaded.ok());
  REQUIRE(loaded.scenarios.empty());
  return loaded.diagnostics.front().message;
}

std::string repeated(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) {
    out += part;
  }
  return out;
}

}  // namespace

TEST_CASE("a file of more than 4 MiB is refused unread") {
  const std::string text = "version: 1\n#" + std::string((4 << 20) - 11, 'x');
  CHECK(text.size() == (size_t{4} << 20) + 1);
  CHECK_THAT(first_message(load_text(text)), Catch::Contains("larger than 4 MiB"));
  CHECK(load_text(text.substr(0, size_t{4} << 20)).ok());
}

TEST_CASE("values are nested at most 64 levels deep") {
  // The root map is one level, the value of `trainer` the next, and so on.
  const auto nested = [](int lists) {
    return "version: 1\ntrainer: {hpus: " + repeated("[", lists) + repeated("]", lists) + "}\n";
  };
  CHECK(load_text(nested(62)).ok());
  const LoadedScenarios deep = load_text(nested(63));
  CHECK_THAT(first_message(deep), Catch::Contains("deeper than 64"));
  // 16 bytes stand before the first bracket; the 63rd is one too many.
  CHECK(deep.diagnostics[0].place == SourcePlace{"s.yaml", 2, 16 + 63});
}

TEST_CASE("hundreds of thousands of brackets or braces give one error") {
  for (const std::string bracket : {"[", "{", "- ", "? ", "{a: "}) {
    const LoadedScenarios loaded = load_text("version: 1\ntrainer: " + repeated(bracket, 200'000));
    CHECK(loaded.diagnostics.size() == 1);
  }
}

TEST_CASE("aliases that multiply end at a million values") {
  std::string text = "version: 1\nenv:\n  a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (char name = 'b'; name <= 'h'; ++name) {
    const std::string alias = std::string("*") + static_cast<char>(name - 1);
    text +=
        std::string("  ") + name + ": &" + name + " [" + alias + repeated(", " + alias, 9) + "]\n";
  }
  CHECK_THAT(first_message(load_text(text)), Catch::Contains("more than 1000000 values"));
}

TEST_CASE("merge keys that multiply end at a million values") {
  std::string text = "version: 1\nenv:\n  a: &a {";
  for (int i = 0; i < 1000; ++i) {
    text += "k" + std::to_string(i) + ": 1, ";
  }
  text += "}\n  b: [";
  for (int i = 0; i < 2000; ++i) {
    text += "{<<: *a}, ";
  }
  text += "]\n";
  CHECK_THAT(first_message(load_text(text)), Catch::Contains("more than 1000000 values"));
}

TEST_CASE("a file of many mistakes shows the first 200 and counts the others") {
  std::string text = "version: 1\ntrainer:\n";
  for (int i = 0; i < 1000; ++i) {
    text += "  wrong_" + std::to_string(i) + ": 1\n";
  }
  const LoadedScenarios loaded = load_text(text);
  REQUIRE(loaded.diagnostics.size() == 201);
  CHECK(loaded.diagnostics[0].place == SourcePlace{"s.yaml", 3, 3});
  CHECK(loaded.diagnostics[200].message == "and 800 more errors");
}

TEST_CASE("a hundred thousand statements that each bind and read a name load") {
  std::string text = "version: 1\ncluster: {ranks: 2}\nprogram:\n  main:\n  - let: {x0: 1}\n";
  for (int i = 1; i < 100'000; ++i) {
    text += "  - let: {x" + std::to_string(i) + ": x" + std::to_string(i - 1) + "}\n";
  }
  CHECK(load_text(text).ok());
}

TEST_CASE("cases that multiply a large file are refused") {
  std::string text = "version: 1\nverify: {world_sizes: [" + repeated("1, ", 100'000) + "]}\n";
  text += "cases:\n";
  for (int i = 0; i < 900; ++i) {
    text += "  c" + std::to_string(i) + ": {}\n";
  }
  CHECK_THAT(first_message(load_text(text)), Catch::Contains("900 cases"));
}

TEST_CASE("depth counts through aliases") {
  std::string text = "version: 1\nenv:\n  a: &a " + repeated("[", 40) + repeated("]", 40) + "\n";
  text += "  b: " + repeated("[", 30) + "*a" + repeated("]", 30) + "\n";
  CHECK_THAT(first_message(load_text(text)), Catch::Contains("deeper than 64"));
}

TEST_CASE("an empty file and a file of comments say how to begin") {
  for (const std::string text : {"", "\n", "# nothing\n", "---\n"}) {
    const LoadedScenarios loaded = load_text(text);
    CHECK_THAT(first_message(loaded), Catch::Contains("empty"));
    CHECK(loaded.diagnostics.size() == 1);
  }
}

TEST_CASE("a scenario without a version is refused") {
  CHECK_THAT(first_message(load_text("seed_everything: 1\n")), Catch::Contains("`version`"));
}

TEST_CASE("a missing file, a directory and a device are diagnostics") {
  CHECK_THAT(first_message(load_scenario_file("/nowhere/s.yaml")),
             Catch::Contains("file not found"));
  CHECK_THAT(first_message(load_scenario_file("/")), Catch::Contains("a folder"));
  CHECK_THAT(first_message(load_scenario_file("/dev/zero")), Catch::Contains("a device"));
}

TEST_CASE("a byte order mark and CRLF line ends change no place") {
  const LoadedScenarios loaded = load_text("\xef\xbb\xbfversion: 1\r\nseed_everything: 01\r\n");
  REQUIRE(loaded.diagnostics.size() == 1);
  CHECK(loaded.diagnostics[0].place == SourcePlace{"s.yaml", 2, 18});
}

TEST_CASE("JSON loads as it is") {
  CHECK(
      load_text("{\"version\": 1, \"trainer\": {\"devices\": 8}, \"expect\": [\"no_hang\"]}").ok());
}

TEST_CASE("the caret stands below the mistake, also behind letters of several bytes") {
  const LoadedScenarios loaded = load_text(
      "version: 1\nenv: {\"Gr\xc3\xb6\xc3\x9f"
      "e\": a}\n"
      "trainer: {\"f\xc3\xbcr\": 1}\n");
  const std::string text = render(loaded.diagnostics, loaded.sources);
  CHECK_THAT(text, Catch::Contains(" 3 | trainer: {\"f\xc3\xbcr\": 1}\n"
                                   "   |           ^"));
  const LoadedScenarios behind =
      load_text("version: 1\nversions: {torch: \"\xc3\xbc\", torhc: \"1\"}\n");
  CHECK_THAT(render(behind.diagnostics, behind.sources),
             Catch::Contains(" 2 | versions: {torch: \"\xc3\xbc\", torhc: \"1\"}\n   | " +
                             std::string(23, ' ') + "^^^^^\n"));
}

}  // namespace lockstep::limits_test
