#include "model/expression/evaluate.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/unit/expression/evaluation.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace evaluate_test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Case {
  const char* text;
  Value value;
};

}  // namespace

TEST_CASE("precedence and grouping are Python's") {
  const Case cases[] = {
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"10 - 4 - 3", 3},
      {"100 / 10 / 5", 2.0},
      {"2 * 7 // 4 % 2", 1},
      {"-2 ** 2", -4},
      {"(-2) ** 2", 4},
      {"2 ** 3 ** 2", 512},
      {"2 ** -1", 0.5},
      {"2 ** -1 ** 2", 0.5},
      {"-2 * -3", 6},
      {"- -3", 3},
      {"2 - -3", 5},
      {"1 + 1 == 2", true},
      {"not 1 == 2", true},
      {"not true and false", false},
      {"not (true and false)", true},
      {"true or true and false", true},
      {"(true or true) and false", false},
      {"not not true", true},
      {"1 < 2 and 2 < 1 or true", true},
      {"[1, 2, 3][1] ** 2", 4},
      {"-[5][0]", -5},
      {"2 ** [3][0]", 8},
      {"5 % -3", -1},
  };
  for (const Case& one : cases) {
    INFO(one.text);
    CHECK(value_of(one.text) == one.value);
  }
}

TEST_CASE("arithmetic of numbers gives what Python gives, types included") {
  const Case cases[] = {
      {"7 / 2", 3.5},
      {"6 / 2", 3.0},
      {"7 // 2", 3},
      {"-7 // 2", -4},
      {"7 // -2", -4},
      {"-7 // -2", 3},
      {"-7 % 3", 2},
      {"7 % -3", -2},
      {"-7 % -3", -1},
      {"6 % -3", 0},
      {"-7.5 % 2", 0.5},
      {"7.5 // -2", -4.0},
      {"5.0 % -3", -1.0},
      {"0.3 // 0.1", 2.0},
      {"0.3 % 0.1", 0.09999999999999998},
      {"1 // 0.1", 9.0},
      {"-1 % inf", infinity},
      {"-1 // inf", -1.0},
      {"1 // inf", 0.0},
      {"6.0 % -3", -0.0},
      {"0 ** 0", 1},
      {"(-2) ** 3", -8},
      {"2 ** 62", int64_t{1} << 62},
      {"(-1) ** 1_000_001", -1},
      {"4 ** 0.5", 2.0},
      {"2.0 ** 3", 8.0},
      {"true + true", 2},
      {"3 * (1 == 1)", 3},
      {"-true", -1},
      {"true / 2", 0.5},
      {"10 + (2 == 0)", 10},
      {"0.1 + 0.2", 0.30000000000000004},
      {"3e2", 300},
      {"3e-1", 0.3},
      {"3.0e2", 300.0},
      {"1e30", 1e30},
      {"100_000", 100000},
      {"-inf", -infinity},
      {"inf - 1", infinity},
      {"1 - 1.0", 0.0},
      {"9_007_199_254_740_993 / 1", 9007199254740992.0},
  };
  for (const Case& one : cases) {
    INFO(one.text);
    CHECK(value_of(one.text) == one.value);
  }
}

TEST_CASE("comparisons are exact between int and float, and by content elsewhere") {
  const Case cases[] = {
      {"1 == 1.0", true},
      {"true == 1", true},
      {"9007199254740993 == 9007199254740992.0", false},
      {"9007199254740993 > 9007199254740992.0", true},
      {"2 != 3", true},
      {"2 >= 2", true},
      {"'a' == 'a'", true},
      {"'a' < 'b'", true},
      {"[1, 2.0] == [1.0, 2]", true},
      {"[1] == [1, 2]", false},
      {"inf - inf == inf - inf", false},
      {"inf - inf != inf - inf", true},
      {"10 ms == 10_000 us", true},
      {"1 KiB > 1 kB", true},
      {"1 ms > 0", true},
      {"8 Gb/s == 1 GB/s", true},
  };
  for (const Case& one : cases) {
    INFO(one.text);
    CHECK(value_of(one.text) == one.value);
  }
}

TEST_CASE("quantities add to their kind, scale by numbers and divide to floats") {
  const Case cases[] = {
      {"10 ms + 5 us", Time(10'005'000'000)},
      {"10 ms - 20 ms", Time(-10'000'000'000)},
      {"-10 ms", Time(-10'000'000'000)},
      {"3 * 2 KiB", Bytes(6144)},
      {"2 KiB * 0.5", Bytes(1024)},
      {"10 ms * (1 == 1)", Time(10'000'000'000)},
      {"10 ms + 0", Time(10'000'000'000)},
      {"7 B / 2", Bytes(4)},
      {"-7 B / 2", Bytes(-4)},
      {"7 B // 2", Bytes(3)},
      {"7 B / 2.0", Bytes(4)},
      {"1 s / 1 ms", 1000.0},
      {"7 ms // 2 ms", 3},
      {"7 ms % 2 ms", Time(1'000'000'000)},
      {"100 GB / (50 GB/s)", Time(2'000'000'000'000)},
      {"3 TFLOP / (2 TFLOP/s)", Time(1'500'000'000'000)},
      {"abs(0 - 3 B)", Bytes(3)},
      {"sum([1 ms, 2 ms])", Time(3'000'000'000)},
      {"mean([1 ms, 2 ms])", Time(1'500'000'000)},
      {"max(1 ms, 2 us)", Time(1'000'000'000)},
  };
  for (const Case& one : cases) {
    INFO(one.text);
    CHECK(value_of(one.text) == one.value);
  }
}

TEST_CASE("and, or stop where the answer is certain") {
  Bindings bindings;
  CHECK(evaluate(expression("false and missing"), bindings) == Value(false));
  CHECK(evaluate(expression("true or missing"), bindings) == Value(true));
  CHECK(bindings.lookups == 0);
  CHECK(error_of("true and missing") == "9: `missing` is not bound here");
}

TEST_CASE("names, dotted names, keys and functions come from the environment") {
  const Bindings bindings({{"rank", 3},
                           {"self.total", 2.5},
                           {"callback_metrics", Map{{"val_loss", 0.5}, {"a/b", 7}}},
                           {"outputs", List{Map{{"n", 1}}, Map{{"n", 2}}}}});
  CHECK(value_of("rank == 3", bindings) == Value(true));
  CHECK(value_of("self.total * 2", bindings) == Value(5.0));
  CHECK(value_of("callback_metrics['a/b']", bindings) == Value(7));
  CHECK(value_of("outputs[-1]['n']", bindings) == Value(2));
  CHECK(value_of("count_of_arguments(1, rank, [2])", bindings) == Value(3));
  CHECK(error_of("1 + callback_metrics['x']", bindings) == "20: there is no key 'x'");
  CHECK(error_of("callback_metrics[1]", bindings) == "16: a key is text, not int");
}

TEST_CASE("random and unknown are asked of the environment with their place") {
  Bindings bindings;
  bindings.outcome = true;
  CHECK(evaluate(expression("1 + random()"), bindings) == Value(1.25));
  CHECK(bindings.random_place == SourcePlace{"scenario.yaml", 3, 15});
  CHECK(evaluate_condition(expression("false or unknown"), bindings));
  CHECK(bindings.unknown_place == SourcePlace{"scenario.yaml", 3, 20});
}

TEST_CASE("functions of numbers and lists") {
  const Case cases[] = {
      {"range(2, 5)", List{2, 3, 4}},
      {"range(5, 2)", List{}},
      {"len([1, 2])", 2},
      {"len('abc')", 3},
      {"shape(3)", List{}},
      {"sum([])", 0},
      {"sum([1, 2.5])", 3.5},
      {"sum([true, true])", 2},
      {"sum([true])", 1},
      {"mean([1, 2])", 1.5},
      {"min(3, 1, 2)", 1},
      {"max([3, 1])", 3},
      {"min([2, 2.0])", 2},
      {"abs(-3)", 3},
      {"abs(-2.5)", 2.5},
      {"sqrt(9)", 3.0},
      {"exp(0)", 1.0},
      {"log(exp(2))", 2.0},
      {"cos(0)", 1.0},
      {"abs(cos(3.141592653589793) + 1) < 1e-15", true},
      {"where(1 < 2, 3, 'a')", 3},
      {"where(1 > 2, 3, 'a')", "a"},
      {"isnan(inf - inf)", true},
      {"isnan(1)", false},
      {"int(3.9)", 3},
      {"int(-3.9)", -3},
      {"int(true)", 1},
      {"float(2)", 2.0},
      {"concat([[1], [], [2, 'a']])", List{1, 2, "a"}},
      {"[1, [2]][1][0]", 2},
      {"[1, 2, 3,][-3]", 1},
  };
  for (const Case& one : cases) {
    INFO(one.text);
    CHECK(value_of(one.text) == one.value);
  }
}

TEST_CASE("unknown is asked only where it decides") {
  struct Case {
    std::string text;
    int64_t epoch;
    bool asked;
    bool holds;
  };
  // With `unknown` true, but for the one that guards a name.
  const std::vector<Case> cases{
      {"unknown and epoch == 2", 0, false, false},
      {"unknown and epoch == 2", 2, true, true},
      {"epoch == 2 and unknown", 0, false, false},
      {"unknown or epoch == 2", 2, false, true},
      {"unknown or epoch == 2", 0, true, true},
      {"not unknown and epoch == 2", 0, false, false},
      {"(unknown and epoch > 1) and epoch < 5", 7, false, false},
      {"(unknown and epoch > 1) and epoch < 5", 0, false, false},
      {"(unknown or epoch > 1) and epoch < 5", 3, false, true},
      // Right of it stands what `unknown` guards, or what is seen when it is evaluated.
      {"unknown and not_bound > 1", 0, true, false},
      {"unknown and random() > 0.5", 0, true, false},
      {"unknown and count_of_arguments(1) == 2", 0, true, false},
      {"unknown and unknown", 0, true, true},
  };
  for (const Case& each : cases) {
    Bindings bindings({{"epoch", each.epoch}});
    bindings.outcome = each.text.find("not_bound") == std::string::npos;
    INFO(each.text << ", epoch " << each.epoch);
    CHECK(evaluate_condition(expression(each.text), bindings) == each.holds);
    CHECK((bindings.unknown_place != SourcePlace{}) == each.asked);
  }
}

TEST_CASE("every error has the column of the part that has no value") {
  const std::pair<const char*, const char*> cases[] = {
      {"1 / 0", "2: division by zero"},
      {"1.0 // 0", "4: division by zero"},
      {"5 % 0.0", "2: division by zero"},
      {"0 ** -1", "2: division by zero"},
      {"1 ms / 0", "5: division by zero"},
      {"1 ms / 0 ms", "5: division by zero"},
      {"9223372036854775807 + 1", "20: the result does not fit in an int of 64 bits"},
      {"-9223372036854775807 - 2", "21: the result does not fit in an int of 64 bits"},
      {"(-9223372036854775807 - 1) // -1", "27: the result does not fit in an int of 64 bits"},
      {"2 ** 63", "2: the result does not fit in an int of 64 bits"},
      {"100 d * 10", "6: a quantity does not fit in 64 bits"},
      {"(-8) ** 0.5", "5: a negative number has no real power of a fraction"},
      {"1 + 'a'", "2: `+` does not take int and text"},
      {"1 == 'a'", "2: `==` does not take int and text"},
      {"[1] + [2]", "4: `+` does not take list and list"},
      {"1 ms + 1", "5: `+` does not take time and int"},
      {"1 ms < 1 B", "5: `<` does not take time and bytes"},
      {"1 ms * 1 ms", "5: `*` does not take time and time"},
      {"2 / 1 ms", "2: `/` does not take int and time"},
      {"-'a'", "0: `-` does not take text"},
      {"1 and true", "0: a number is never a condition, and this is of type int"},
      {"true and 0.5", "9: a number is never a condition, and this is of type float"},
      {"not 3", "4: a number is never a condition, and this is of type int"},
      {"true or false and 'x' or 1", "no error: true"},
      {"false or 'x'", "9: a condition is a bool, not text"},
  };
  for (const auto& [text, error] : cases) {
    INFO(text);
    CHECK(error_of(text) == error);
  }
}

TEST_CASE("errors of names, items and functions have their column too") {
  const std::pair<const char*, const char*> cases[] = {
      {"[1, 2][2]", "6: index 2 is out of range: the list has 2 items"},
      {"[1, 2][-3]", "6: index -3 is out of range: the list has 2 items"},
      {"[1][0.0]", "3: an index is an int, not float"},
      {"'abc'[0]", "5: text has no items to index"},
      {"  missing", "2: `missing` is not bound here"},
      {"len", "0: `len` is not bound here"},
      {"1 + nothing(2)", "4: there is no function `nothing`"},
      {"1 + refuse(2)", "4: refused"},
      {"1 + len(1, 2)", "4: `len` was given 2 arguments"},
      {"random(1)", "0: `random` was given 1 argument"},
      {"exp(1000)", "0: exp(1000) is too large"},
      {"log(0)", "0: 0 has no logarithm"},
      {"sqrt(-1)", "0: a negative number, -1, has no square root"},
      {"int(inf)", "0: inf has no int of 64 bits"},
      {"int('3')", "0: int does not take text"},
      {"mean([])", "0: the mean of an empty list"},
      {"min([])", "0: the min of an empty list"},
      {"max(['a', 1])", "0: `>` does not take int and text"},
      {"sum('ab')", "0: sum does not take text"},
      {"len(3)", "0: len does not take int"},
      {"arange(-1)", "0: arange of a negative length, -1"},
      {"arange(67108865)", "0: arange of 67108865 elements: the limit is 67108864"},
      {"full([1_000_000, 1_000_000], 0)",
       "0: full of 1000000000000 elements: the limit is 67108864"},
      {"range(0, 1_048_577)", "0: range of 1048577 elements: the limit is 1048576"},
      {"arange(2) + arange(3)", "10: `+` takes tensors of one shape, not [2] and [3]"},
      {"arange(3) // 0", "10: division by zero in an integer tensor"},
      {"arange(2)[2]", "9: index 2 is out of range: the tensor has shape [2]"},
      {"not arange(2)",
       "4: a tensor of shape [2] cannot be a condition: it does not have exactly one element"},
  };
  for (const auto& [text, error] : cases) {
    INFO(text);
    CHECK(error_of(text) == error);
  }
}

TEST_CASE("an infinite result of finite floats is an overflow") {
  CHECK(error_of("1.0e308 * 10") == "8: the result does not fit in a float of 64 bits");
  CHECK(error_of("10.0 ** 400") == "5: the result does not fit in a float of 64 bits");
  CHECK(value_of("inf * 2") == Value(infinity));
}

TEST_CASE("an evaluation is bounded in what it makes") {
  Bindings bindings;
  const EvaluationLimits small{.tensor_elements = 100, .list_items = 10, .made = Bytes(4096)};
  CHECK_NOTHROW(evaluate(expression("arange(100)"), bindings, small));
  CHECK_THROWS_AS(evaluate(expression("arange(101)"), bindings, small), EvaluationError);
  CHECK_THROWS_AS(evaluate(expression("range(0, 11)"), bindings, small), EvaluationError);
  CHECK_THROWS_AS(evaluate(expression("concat([arange(60), arange(60)])"), bindings, small),
                  EvaluationError);
  CHECK_THROWS_AS(evaluate(expression("arange(100) + arange(100) + arange(100) + arange(100)"),
                           bindings, small),
                  EvaluationError);
}

TEST_CASE("conditions and ints are asked for at the place of the expression") {
  Bindings bindings({{"flag", Tensor{{1}, Values::of(DType::fp32, {2})}}});
  CHECK(evaluate_condition(expression("flag"), bindings));
  CHECK(evaluate_integer(expression("2 + 1"), bindings, "dst") == 3);
  CHECK(evaluate_integer(expression("sum(arange(4))"), bindings, "dst") == 6);
  CHECK_THROWS_WITH(evaluate_integer(expression("4 / 2"), bindings, "dst"),
                    "dst is an int, not float");
  CHECK_THROWS_WITH(evaluate_condition(expression("1"), bindings),
                    "a number is never a condition, and this is of type int");
}

}  // namespace evaluate_test
