// What fits a reader: 100 columns, functions of 60 lines, files of 400.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/tidy/declarations.hpp"
#include "tests/tidy/source.hpp"

namespace lockstep::tidy::size_test {

namespace {

constexpr std::ptrdiff_t most_columns = 100;
constexpr std::ptrdiff_t most_function_lines = 60;
constexpr std::ptrdiff_t most_file_lines = 400;

std::ptrdiff_t line_breaks(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

// Letters, not bytes: in UTF-8 every byte but 10xxxxxx begins one.
std::ptrdiff_t columns(std::string_view line) {
  return std::count_if(line.begin(), line.end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; });
}

Offences long_lines(const Source& file) {
  Offences offences;
  for (size_t begin = 0; begin < file.text.size();) {
    const size_t end = std::min(file.text.find('\n', begin), file.text.size());
    const auto width = columns(std::string_view(file.text).substr(begin, end - begin));
    if (width > most_columns) {
      offences.push_back(place(file, begin) + ": " + std::to_string(width) + " columns");
    }
    begin = end + 1;
  }
  return offences;
}

// From the first line of the declaration to the closing brace, test cases included.
Offences long_functions(const Source& file) {
  Offences offences;
  for (const Declaration& declared : declarations_of(code_of(file.text))) {
    const auto lines = 1 + line_breaks(std::string_view(file.text).substr(
                               declared.begin, declared.end - declared.begin));
    if (declared.is_function && lines > most_function_lines) {
      offences.push_back(place(file, declared.begin) + ": a function of " + std::to_string(lines) +
                         " lines");
    }
  }
  return offences;
}

Offences long_file(const Source& file) {
  const auto lines = line_breaks(file.text);
  if (lines <= most_file_lines) {
    return {};
  }
  return {place(file, file.text.size() - 1) + ": a file of " + std::to_string(lines) + " lines"};
}

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) {
    text += part;
  }
  return text;
}

}  // namespace

TEST_CASE("no line is longer than 100 columns") {
  for (const Source& file : cpp_files()) {
    expect_none(long_lines(file));
  }
}

TEST_CASE("no function is longer than 60 lines") {
  for (const Source& file : cpp_files()) {
    expect_none(long_functions(file));
  }
}

TEST_CASE("no file is longer than 400 lines") {
  for (const Source& file : cpp_files()) {
    expect_none(long_file(file));
  }
}

TEST_CASE("the rule of columns sees an offence and counts letters") {
  CHECK(long_lines({"a.cpp", "x\n" + repeated("x", 101)}) == Offences{"a.cpp:2: 101 columns"});
  CHECK(long_lines({"a.cpp", repeated("\xc3\xa9", 100)}).empty());
}

TEST_CASE("the rule of functions sees an offence") {
  const std::string body = " {\n" + repeated("  g({1});\n", 59) + "}\n";
  CHECK(long_functions({"a.cpp", "\nvoid f()" + body}) ==
        Offences{"a.cpp:2: a function of 61 lines"});
  CHECK(long_functions(
            {"a.cpp", "namespace a {\nclass B {\n public:\n  void f() const" + body + "};\n}\n"})
            .size() == 1);
  CHECK(long_functions({"a.cpp", "template <class T>\nbool operator==(T a, T b)" + body}).size() ==
        1);
  CHECK(long_functions({"a.cpp", "A::A(int b) : b_{b}, c_{}" + body}).size() == 1);
  CHECK(long_functions({"a.cpp", "extern \"C\" int f()" + body}).size() == 1);
  CHECK(long_functions({"a.cpp", "TEST_CASE(\"{\")" + body}).size() == 1);
}

TEST_CASE("the rule of functions does not take other braces for functions") {
  const std::string many = "{\n" + repeated("  {1, f(2)},\n", 80) + "}";
  CHECK(long_functions({"a.cpp", "constexpr int table[] = " + many + ";\n"}).empty());
  CHECK(long_functions({"a.cpp", "namespace a " + many + "\n"}).empty());
  CHECK(long_functions({"a.cpp", "enum class A : int " + many + ";\n"}).empty());
  CHECK(long_functions({"a.cpp", "void f() {\n" + repeated("  g();\n", 58) + "}\n"}).empty());
}

TEST_CASE("the rule of files sees an offence") {
  CHECK(long_file({"a.cpp", repeated("x\n", 401)}).size() == 1);
  CHECK(long_file({"a.cpp", repeated("x\n", 400)}).empty());
}

}  // namespace lockstep::tidy::size_test
