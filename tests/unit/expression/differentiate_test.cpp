#include <catch2/catch.hpp>
#include <cmath>

#include "model/expression/differentiate.hpp"
#include "tests/unit/expression/evaluation.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace differentiate_test {

namespace {

// fp64, so that differences of it say something.
Value vector_of(const std::vector<double>& numbers) {
  Values values(DType::fp64, static_cast<int64_t>(numbers.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    values.set(static_cast<int64_t>(i), numbers[i]);
  }
  return Value(Tensor{{static_cast<int64_t>(numbers.size())}, std::move(values)});
}

double number_of(const Value& value) {
  return value.is(Value::Kind::tensor) ? value.tensor().values.number(0) : value.number();
}

const std::vector<double> point = {0.7, 2.5, -1.25};

Bindings bound(const std::vector<double>& x) {
  return Bindings({{"x", vector_of(x)}, {"y", vector_of({3, -2, 0.5})}, {"a", Value(1.5)}});
}

Adjoint gradient(const std::string& text) {
  Bindings bindings = bound(point);
  auto result = pull_back(expression(text), bindings, {1}, {"x"});
  return result["x"];
}

bool depends_on_x(const std::string& text) {
  return is_differentiable_in(expression(text), [](std::string_view name) { return name == "x"; });
}

}  // namespace

TEST_CASE("the gradient of an expression is what small differences show") {
  for (const std::string text : {"sum(x)",
                                 "mean(x) * 3",
                                 "sum(x * x)",
                                 "sum(x * y) / a",
                                 "x[1] - 2 * x[0]",
                                 "x[-1] ** 3",
                                 "sum(a / x)",
                                 "sum(x / (y + x))",
                                 "max(x) - min(x)",
                                 "sum(abs(x) * y)",
                                 "sqrt(x[1] * 4)",
                                 "exp(mean(x)) * a",
                                 "sum(log(x * x) * y)",
                                 "sum(-x * (1 - x))",
                                 "sum(softmax(x) * y)",
                                 "sum(concat([x, 2 * x]) * 1.5)",
                                 "mean(concat([x[0], 3 * x[2]])) * a",
                                 "sum(x) * sum(x * y)",
                                 "a ** x[0]",
                                 "sum(x - x[1])",
                                 "sum(x * (x > 0))"}) {
    INFO(text);
    const Adjoint found = gradient(text);
    REQUIRE(found.size() == point.size());
    for (size_t i = 0; i < point.size(); ++i) {
      constexpr double step = 1e-5;
      std::vector<double> above = point;
      std::vector<double> below = point;
      above[i] += step;
      below[i] -= step;
      const double slope =
          (number_of(value_of(text, bound(above))) - number_of(value_of(text, bound(below)))) /
          (2 * step);
      CHECK(found[i] == Approx(slope).epsilon(1e-6).margin(1e-6));
    }
  }
}

TEST_CASE("the numbers of a vector each pass their part of the gradient back") {
  Bindings bindings = bound(point);
  const auto result = pull_back(expression("2 * x + y[0]"), bindings, {1, 10, 100}, {"x", "y"});
  CHECK(result.at("x") == Adjoint{2, 20, 200});
  CHECK(result.at("y") == Adjoint{111, 0, 0});
}

TEST_CASE("equal extremes share the gradient, as in PyTorch") {
  Bindings bindings({{"x", vector_of({4, 4, 1, 4})}});
  const auto result = pull_back(expression("max(x)"), bindings, {3}, {"x"});
  CHECK(result.at("x") == Adjoint{1, 1, 0, 1});
}

TEST_CASE("what leaves the graph depends on nothing") {
  CHECK(depends_on_x("1 + x[0]"));
  CHECK(depends_on_x("mean([a, x[0]])"));
  CHECK_FALSE(depends_on_x("len(x) + a"));
  CHECK_FALSE(depends_on_x("float(x[0])"));
  CHECK_FALSE(depends_on_x("x[0] > 1"));
  CHECK_FALSE(depends_on_x("y[int(x[0])]"));
}

TEST_CASE("a gradient that is not known is refused where it would pass") {
  Bindings bindings = bound(point);
  CHECK_THROWS_AS(pull_back(expression("sum(x % 2)"), bindings, {1}, {"x"}), EvaluationError);
  CHECK_THROWS_AS(pull_back(expression("max(x[0], a)"), bindings, {1}, {"x"}), EvaluationError);
}

}  // namespace differentiate_test
