#include <cstddef>
#include <cstdint>

#include "io/expression/parser.hpp"
#include "io/expression/quantity.hpp"
#include "model/expression/evaluate.hpp"

namespace {

class Nothing : public lockstep::Environment {
 public:
  std::optional<lockstep::Value> lookup(std::string_view) override { return std::nullopt; }
  double random(const lockstep::SourcePlace&) override { return 0.5; }
  bool unknown(const lockstep::SourcePlace&) override { return true; }
};

}  // namespace

/// Whatever the bytes are, parsing and evaluating end with a value or an error that has a place.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const QuantityKind kind : {QuantityKind::time, QuantityKind::rate, QuantityKind::flops}) {
    parse_quantity(text, kind);
  }
  parse_percent(text);
  const ParsedExpression parsed = parse_expression(text, {"fuzz", 1, 1});
  const auto* expression = std::get_if<Expression>(&parsed);
  if (expression == nullptr) {
    return 0;
  }
  Nothing nothing;
  const EvaluationLimits limits{
      .tensor_elements = 4096, .list_items = 4096, .made = Bytes(16 << 20)};
  try {
    text_of(evaluate(*expression, nothing, limits));
  } catch (const EvaluationError&) {
  }
  return 0;
}
