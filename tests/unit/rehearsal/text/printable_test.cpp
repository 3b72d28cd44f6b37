#include "rehearsal/text/printable.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "cli/command_line.hpp"
#include "cli/render/style.hpp"
#include "tests/unit/temporary_place.hpp"

using namespace lockstep::cli;

TEST_CASE("control characters are written out and everything else stays") {
  CHECK(printable("loss") == "loss");
  CHECK(printable("\033[2J") == "\\x1b[2J");
  CHECK(printable("a\nb\tc\r") == "a\\nb\\x09c\\x0d");
  CHECK(printable("a\nb", "\n") == "a\nb");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable("µs → größer 漢") == "µs → größer 漢");
  CHECK(printable("\xc2\x9b"
                  "2J") == "\\u009b2J");  // CSI as one character of C1
  CHECK(printable("\x9b"
                  "2J") == "\\x9b2J");  // and as a byte, which is no UTF-8
  CHECK(printable("\xe2\x80\xae"
                  "abc") == "\\u202eabc");                // text from right to left
  CHECK(printable("\xf0\x9f\x98") == "\\xf0\\x9f\\x98");  // cut short
  CHECK(printable("\xc0\x9b") == "\\xc0\\x9b");           // longer than it need be
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
}

TEST_CASE("only colours of our own reach the terminal") {
  const Style style{true, true};
  CHECK(printable_result(style.error("error") + ": \033[1;31mred\033[0m\n") ==
        "\033[1;31merror\033[0m: \\x1b[1;31mred\\x1b[0m\n");
  CHECK(printable_result("\x0e"
                         "0123456789abcdef1;31\x0f") == "\\x0e0123456789abcdef1;31\\x0f");
}

TEST_CASE("names and messages of a scenario do not steer the terminal") {
  const lockstep::test::TemporaryPlace place;
  const std::string file = place.path() + "/scenario.yaml";
  std::ofstream(file) << "version: 1\n"
                         "cluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n"
                         "program:\n  main:\n"
                         "    - raise: \"stop \\e]0;owned\\a\\e[2J\"\n"
                         "    - barrier: {at: \"\\e[31m.py:1\"}\n";
  for (const char* command : {"verify", "run", "test"}) {
    const Answer answer = execute_command_line({command, file}, {});
    INFO(answer.text << answer.diagnostics);
    CHECK(answer.text.find('\033') == std::string::npos);
    CHECK(answer.text.find('\a') == std::string::npos);
    CHECK(answer.diagnostics.find('\033') == std::string::npos);
  }
  CHECK(execute_command_line({"verify", file}, {}).text.find("\\x1b[2J") != std::string::npos);
}
