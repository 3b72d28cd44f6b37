#include "cli/render/junit.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::cli {

namespace {

using State = JunitCase::State;

int64_t count(const std::vector<JunitCase>& cases, State state) {
  return std::count_if(cases.begin(), cases.end(),
                       [state](const JunitCase& one) { return one.state == state; });
}

std::string counts(const std::vector<JunitCase>& cases) {
  return fmt::format(R"(tests="{}" failures="{}" errors="{}" skipped="{}")", cases.size(),
                     count(cases, State::failed), count(cases, State::error),
                     count(cases, State::skipped));
}

std::string outcome(const JunitCase& one) {
  const char* element = one.state == State::failed  ? "failure"
                        : one.state == State::error ? "error"
                                                    : "skipped";
  return fmt::format("      <{} message=\"{}\">{}</{}>\n", element, xml_text(one.message),
                     xml_text(one.details), element);
}

std::string test_case(const JunitCase& one) {
  const std::string head = fmt::format(R"(    <testcase classname="{}" name="{}" file="{}")",
                                       xml_text(one.suite), xml_text(one.name), xml_text(one.file));
  return one.state == State::passed ? head + "/>\n"
                                    : head + ">\n" + outcome(one) + "    </testcase>\n";
}

// Length of a well-formed UTF-8 sequence of a character that XML allows; 0 for any other byte.
size_t sequence_length(const std::string& text, size_t at) {
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char first = byte(at);
  const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || at + length > text.size()) {
    return 0;
  }
  uint32_t code = length == 1 ? first : first & (0xffu >> (length + 1));
  for (size_t index = at + 1; index < at + length; ++index) {
    if ((byte(index) & 0xc0) != 0x80) {
      return 0;
    }
    code = code << 6 | (byte(index) & 0x3fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool control = code < 0x20 && code != '\t' && code != '\n' && code != '\r';
  const bool illegal =
      (code >= 0xd800 && code <= 0xdfff) || code == 0xfffe || code == 0xffff || code > 0x10ffff;
  return overlong || control || illegal ? 0 : length;
}

}  // namespace

std::string xml_text(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text, at);
    if (length == 0) {
      out += "\xef\xbf\xbd";
      ++at;
      continue;
    }
    const char letter = text[at];
    if (letter == '&') {
      out += "&amp;";
    } else if (letter == '<') {
      out += "&lt;";
    } else if (letter == '>') {
      out += "&gt;";
    } else if (letter == '"') {
      out += "&quot;";
    } else {
      out += text.substr(at, length);
    }
    at += length;
  }
  return out;
}

std::string junit_of(const std::vector<JunitCase>& cases) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format("<testsuites name=\"lockstep\" {}>\n", counts(cases));
  for (size_t begin = 0; begin < cases.size();) {
    size_t end = begin;
    std::vector<JunitCase> suite;
    while (end < cases.size() && cases[end].suite == cases[begin].suite) {
      suite.push_back(cases[end++]);
    }
    out +=
        fmt::format("  <testsuite name=\"{}\" {}>\n", xml_text(cases[begin].suite), counts(suite));
    for (const JunitCase& one : suite) {
      out += test_case(one);
    }
    out += "  </testsuite>\n";
    begin = end;
  }
  return out + "</testsuites>\n";
}

}  // namespace lockstep::cli
