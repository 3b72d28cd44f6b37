#include <catch2/catch.hpp>

#include "tests/unit/expression/evaluation.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace expression_test {

namespace {

/// "4: message" of the first error, with the offset in the text.
std::string syntax_error(std::string_view text) {
  const ParsedExpression parsed = parse_expression(text, start);
  const auto* errors = std::get_if<std::vector<SyntaxError>>(&parsed);
  if (errors == nullptr) {
    return "no error";
  }
  return std::to_string(errors->front().place.column - start.column) + ": " +
         errors->front().message;
}

std::string remedy(std::string_view text) {
  return std::get<std::vector<SyntaxError>>(parse_expression(text, start)).front().remedy;
}

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) {
    text += part;
  }
  return text;
}

}  // namespace

TEST_CASE("literals have the type that they show") {
  CHECK(value_of("8") == Value(8));
  CHECK(value_of("3e8") == Value(300'000'000));
  CHECK(value_of("0.5") == Value(0.5));
  CHECK(value_of("1e-400") == Value(0.0));
  CHECK(value_of("9223372036854775807") == Value(INT64_MAX));
  CHECK(value_of("10 ms") == Value(Time(10'000'000'000)));
  CHECK(value_of("10ms") == Value(Time(10'000'000'000)));
  CHECK(value_of("64 MiB") == Value(Bytes(67'108'864)));
  CHECK(value_of("50 GB/s") == Value(BytesPerSecond(50'000'000'000)));
  CHECK(value_of("400 Gb/s") == Value(BytesPerSecond(50'000'000'000)));
  CHECK(value_of("2 TFLOP") == Value(Flops(2'000'000'000'000)));
  CHECK(value_of("2 TFLOP/s") == Value(FlopsPerSecond(2'000'000'000'000)));
  CHECK(value_of("1 min + 1 s") == Value(Time(61'000'000'000'000)));
  CHECK(value_of(R"('it\'s \\ \n')") == Value("it's \\ \n"));
  CHECK(value_of("''") == Value(""));
  CHECK(value_of("[1, [true, 'a'],]") == Value(List{1, List{true, "a"}}));
  CHECK(value_of("[]") == Value(List{}));
}

TEST_CASE("a unit per second is not a division by what follows") {
  const Bindings bindings({{"steps", 4}, {"s", 2}});
  CHECK(value_of("8 B/steps", bindings) == Value(Bytes(2)));
  CHECK(value_of("8 B / s", bindings) == Value(Bytes(4)));
  CHECK(value_of("8 B/s", bindings) == Value(BytesPerSecond(8)));
  CHECK(value_of("8 s/s", bindings) == Value(Time(4'000'000'000'000)));
}

TEST_CASE("a syntax error has the column of what does not fit") {
  const std::pair<const char*, const char*> cases[] = {
      {"", "0: the expression is empty"},
      {"   ", "3: the expression is empty"},
      {"1 +", "3: expected a value, found the end"},
      {"1 2", "2: expected an operator or the end, found 2"},
      {"(1", "2: expected `)` here, found the end"},
      {"[1, 2", "5: expected `]` here, found the end"},
      {"[1 2]", "3: expected `]` here, found 2"},
      {"f(1, ", "5: expected a value, found the end"},
      {"x[1", "3: expected `]` here, found the end"},
      {"x[]", "2: expected a value, found `]`"},
      {"1)", "1: `)` has no matching opening bracket"},
      {"1, 2", "1: a comma is allowed only in brackets"},
      {"(1, 2)", "2: there are no tuples"},
      {"1 < 2 < 3", "6: comparisons do not chain"},
      {"1 == 2 != 3", "7: comparisons do not chain"},
      {"1 + not true", "4: `not` binds less than the operator before it"},
      {"+1", "0: expected a value, found `+`"},
      {"and true", "0: expected a value, found `and`"},
      {"10 % ", "3: a percentage is not allowed inside an expression"},
      {"10 % == x", "3: a percentage is not allowed inside an expression"},
      {"1 if true else 2", "2: unknown unit `if`"},
      {"x if true else 2", "2: there are no conditional expressions"},
      {"3 parsecs", "2: unknown unit `parsecs`"},
      {"10 Mb", "3: unknown unit `Mb`"},
      {"007", "0: a number does not begin with a zero"},
      {"1__0", "0: an `_` in a number must be between two digits"},
      {"1. + 2", "0: a point needs digits on both sides"},
      {".5", "0: `.` is not part of the language"},
      {"9223372036854775808", "0: the number does not fit in an int of 64 bits"},
      {"1e999", "0: the number does not fit in a float of 64 bits"},
      {"200 d", "0: the time does not fit in 64 bits"},
      {"x = 1", "2: `=` is not part of the language"},
      {"x && y", "2: `&&` is not part of the language"},
      {"!x", "0: `!` is not part of the language"},
      {"\"a\"", "0: `\"` is not part of the language"},
      {"x == 'abc", "5: the text does not end"},
      {R"('a\d')", "2: an unknown escape"},
      {"1 + \xc3\xa9", "4: a character that is not part of the language (byte 0xc3)"},
      {"x[1:2]", "3: `:` is not part of the language"},
      {"True", "0: `True` is not a word of the language"},
      {"torch.sum(x)", "0: `torch.sum` is not a function: functions have no dots"},
      {"(x)(1)", "3: only a function can be called"},
  };
  for (const auto& [text, error] : cases) {
    INFO(text);
    CHECK(syntax_error(text) == error);
  }
}

TEST_CASE("remedies name the nearest legal spelling") {
  CHECK(remedy("10 msec + 1 ms") == "did you mean `ms`?");
  CHECK(remedy("10 seconds") == "did you mean `s`?");
  CHECK(remedy("64 mib") == "did you mean `MiB`?");
  CHECK(remedy("10 Mb").find("Mb/s") != std::string::npos);
  CHECK(remedy("a && b") == "write `and`");
  CHECK(remedy("torch.sum(x)") == "write sum(..)");
  CHECK(remedy("(1 + [2)") == "it closes the `[` at character 6");
}

TEST_CASE("all characters and words that are none are reported at once") {
  const auto errors =
      std::get<std::vector<SyntaxError>>(parse_expression("a = 1 parsec & 'x", start));
  REQUIRE(errors.size() == 4);
  CHECK(errors[0].place == SourcePlace{"scenario.yaml", 3, 13});
  CHECK(errors[1].place == SourcePlace{"scenario.yaml", 3, 17});
  CHECK(errors[2].place == SourcePlace{"scenario.yaml", 3, 24});
  CHECK(errors[3].place == SourcePlace{"scenario.yaml", 3, 26});
}

TEST_CASE("a text without a place stays without columns") {
  const auto errors = std::get<std::vector<SyntaxError>>(parse_expression("1 +", {"--set", 0, 0}));
  CHECK(errors[0].place == SourcePlace{"--set", 0, 0});
}

TEST_CASE("an expression lists what it needs, in order of first use") {
  const Expression tangled = expression("f(self.total, rank) + rank * x[len(y)] - step_time.low");
  CHECK(tangled.names() ==
        std::vector<std::string>{"self.total", "rank", "x", "y", "step_time.low"});
  CHECK(tangled.functions() == std::vector<std::string>{"f", "len"});
  CHECK(tangled.text() == "f(self.total, rank) + rank * x[len(y)] - step_time.low");
  CHECK_FALSE(tangled.is_constant());
}

TEST_CASE("constant means: no name, no chance, no function from outside") {
  CHECK(expression("sum([1, 2]) * 3 ms").is_constant());
  CHECK_FALSE(expression("rank").is_constant());
  CHECK_FALSE(expression("random()").is_constant());
  CHECK_FALSE(expression("unknown").is_constant());
  CHECK_FALSE(expression("binary_f1_score([1], [1])").is_constant());
  CHECK(expression("1 + random()").uses_random());
  CHECK(expression("not unknown").uses_unknown());
  CHECK_FALSE(expression("1").uses_random());
  const Expression made = Expression::constant(Value(Time(5'000)), start);
  CHECK(made.is_constant());
  CHECK(made.text() == "5 ns");
  CHECK(made.place() == start);
  Bindings none;
  CHECK(evaluate(made, none) == Value(Time(5'000)));
  CHECK(evaluate(Expression(), none) == Value());
}

TEST_CASE("size and depth are bounded with a message, not with the stack") {
  CHECK(value_of(repeated("(", 150) + "1" + repeated(")", 150)) == Value(1));
  CHECK(syntax_error(repeated("(", 250) + "1" + repeated(")", 250)) ==
        "200: nested more than 200 deep");
  CHECK(syntax_error(repeated("[", 60'000)) == "200: nested more than 200 deep");
  CHECK(syntax_error(repeated("-", 60'000) + "1") == "200: nested more than 200 deep");
  CHECK(syntax_error(repeated("2 ** ", 300) + "1") == "1000: nested more than 200 deep");
  CHECK(value_of("1" + repeated(" + 1", 900)) == Value(901));
  CHECK(syntax_error("1" + repeated(" + 1", 1000)) ==
        "3998: more than 999 operations build on one another");
  CHECK(syntax_error("x" + repeated("[0]", 1000)) ==
        "2998: more than 999 operations build on one another");
  CHECK(syntax_error(std::string(65'537, ' ')) ==
        "0: the expression has 65537 bytes; the limit is 65536");
  CHECK(error_of(repeated("[", 100) + repeated("]", 100)) ==
        "34: a list is nested more than 64 deep");
}

TEST_CASE("what a value prints reads back as that value") {
  for (const char* text :
       {"null_free", "'a\\'b'", "[1, 2.5, true]", "64 MiB", "1500 us", "-3", "1e+300", "50 GB/s"}) {
    const Bindings bindings({{"null_free", 1}});
    const Value once = value_of(text, bindings);
    CHECK(value_of(text_of(once)) == once);
  }
}

}  // namespace expression_test
