#include "model/trainer/scheduler/rate_factor.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/expression/evaluate.hpp"

namespace lockstep {

namespace {

/// A lambda sees its argument and nothing else.
class LambdaEnvironment final : public Environment {
 public:
  explicit LambdaEnvironment(int64_t epoch) : epoch_(epoch) {}
  std::optional<Value> lookup(std::string_view name) override {
    if (name == "epoch") {
      return Value(epoch_);
    }
    return name == "pi" ? std::optional(Value(std::numbers::pi)) : std::nullopt;
  }
  double random(const SourcePlace& place) override {
    throw EvaluationError(place, "a rate must be the same on every rank: no random() here", "");
  }
  bool unknown(const SourcePlace& place) override {
    throw EvaluationError(place, "a rate must be the same on every rank: no `unknown` here", "");
  }

 private:
  int64_t epoch_;
};

double value_of(const Expression& expression, int64_t epoch) {
  LambdaEnvironment environment(epoch);
  const Value value = evaluate(expression, environment);
  if (!value.is_number()) {
    throw EvaluationError(expression.place(), "the factor of a rate is a number",
                          "write an expression of `epoch`, as 0.95 ** epoch");
  }
  return value.number();
}

}  // namespace

double RateFactor::at(int64_t epoch) const {
  if (form == Form::expression) {
    return value_of(expression, epoch);
  }
  const auto step = static_cast<double>(epoch);
  if (epoch < warmup) {
    return step / static_cast<double>(std::max<int64_t>(1, warmup));
  }
  const auto decaying = static_cast<double>(std::max<int64_t>(1, total - warmup));
  switch (form) {
    case Form::linear: return std::max(0.0, static_cast<double>(total - epoch) / decaying);
    case Form::cosine: {
      const double progress = static_cast<double>(epoch - warmup) / decaying;
      return std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * cycles * 2.0 * progress)));
    }
    case Form::inverse_root: {
      const auto scale = static_cast<double>(time_scale);
      const int64_t shift = time_scale - warmup;
      return 1.0 / std::sqrt(static_cast<double>(epoch + shift) / scale);
    }
    default: return 1.0;
  }
}

}  // namespace lockstep
