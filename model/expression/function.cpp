#include "model/expression/function.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/expression/arithmetic.hpp"
#include "model/expression/evaluation_error.hpp"
#include "model/expression/tensor.hpp"

namespace lockstep {

namespace {

using Arguments = std::span<const Value>;
using Kind = Value::Kind;

[[noreturn]] void refuse(std::string_view function, const Value& value, std::string remedy = "") {
  throw OperationError(fmt::format("{} does not take {}", function, type_of(value)),
                       std::move(remedy));
}

void check_elements(std::string_view function, int64_t elements, int64_t limit) {
  if (elements < 0) {
    throw OperationError(fmt::format("{} of a negative length, {}", function, elements));
  }
  if (elements > limit) {
    throw OperationError(
        fmt::format("{} of {} elements: the limit is {}", function, elements, limit));
  }
}

// A tensor of one element as the number it holds.
Value number_in(std::string_view function, const Value& value) {
  if (value.is_number()) {
    return value;
  }
  if (!value.is(Kind::tensor) || value.tensor().values.size() != 1) {
    refuse(function, value, "it takes a number or a tensor of one element");
  }
  const Values& values = value.tensor().values;
  return is_floating(values.dtype()) ? Value(values.number(0)) : Value(values.integer(0));
}

Value apply_full(Arguments arguments, const EvaluationLimits& limits) {
  std::vector<int64_t> shape;
  if (arguments[0].is(Kind::list)) {
    for (const Value& extent : arguments[0].list()) {
      shape.push_back(integer_of(extent, "an extent of a shape"));
    }
  } else {
    shape.push_back(integer_of(arguments[0], "the length of full(n, x)"));
    check_elements("full", shape[0], limits.tensor_elements);
  }
  check_elements("full", element_count(shape), limits.tensor_elements);
  return full(std::move(shape), number_in("full", arguments[1]));
}

Value apply_arange(Arguments arguments, const EvaluationLimits& limits) {
  const int64_t count = integer_of(arguments[0], "the length of arange(n)");
  check_elements("arange", count, limits.tensor_elements);
  return arange(count);
}

Value apply_range(Arguments arguments, const EvaluationLimits& limits) {
  const int64_t begin = integer_of(arguments[0], "the begin of range(a, b)");
  const int64_t end = integer_of(arguments[1], "the end of range(a, b)");
  List list;
  if (begin < end) {
    check_elements("range", narrow_to_int64(Int128{end} - begin), limits.list_items);
    for (int64_t i = begin; i < end; ++i) {
      list.emplace_back(i);
    }
  }
  return list;
}

Value apply_len(Arguments arguments, const EvaluationLimits&) {
  const Value& value = arguments[0];
  switch (value.kind()) {
    case Kind::list: return static_cast<int64_t>(value.list().size());
    case Kind::map: return static_cast<int64_t>(value.map().size());
    case Kind::text: return static_cast<int64_t>(value.text().size());
    case Kind::tensor:
      if (!value.tensor().shape.empty()) {
        return value.tensor().shape.front();
      }
      [[fallthrough]];
    default: refuse("len", value);
  }
}

Value apply_shape(Arguments arguments, const EvaluationLimits&) {
  if (!arguments[0].is(Kind::tensor) && !arguments[0].is_number()) {
    refuse("shape", arguments[0], "len(x) is the length of a list");
  }
  List list;
  if (arguments[0].is(Kind::tensor)) {
    for (const int64_t extent : arguments[0].tensor().shape) {
      list.emplace_back(extent);
    }
  }
  return list;
}

// The operands of a reduction: the items of the one list, or the arguments themselves.
Arguments items_of(Arguments arguments) {
  return arguments.size() == 1 && arguments[0].is(Kind::list) ? Arguments(arguments[0].list())
                                                              : arguments;
}

bool is_one_tensor(Arguments arguments) {
  return arguments.size() == 1 && arguments[0].is(Kind::tensor);
}

Value sum_of(std::string_view function, Arguments items) {
  if (items.empty()) {
    return 0;
  }
  if (!items[0].is_number() && !items[0].is(Kind::tensor) && !items[0].is(Kind::quantity)) {
    refuse(function, items[0], "it takes numbers, quantities and tensors");
  }
  Value total = items[0].is(Kind::boolean) ? apply(Operator::add, items[0], 0) : items[0];
  for (const Value& item : items.subspan(1)) {
    total = apply(Operator::add, total, item);
  }
  return total;
}

Value apply_sum(Arguments arguments, const EvaluationLimits&) {
  if (is_one_tensor(arguments)) {
    return sum(arguments[0].tensor());
  }
  return sum_of("sum", items_of(arguments));
}

Value apply_mean(Arguments arguments, const EvaluationLimits&) {
  if (is_one_tensor(arguments)) {
    return mean(arguments[0].tensor());
  }
  const Arguments items = items_of(arguments);
  if (items.empty()) {
    throw OperationError("the mean of an empty list", "guard it: if len(x) > 0");
  }
  if (std::ranges::any_of(items, [](const Value& item) { return item.is(Kind::tensor); })) {
    throw OperationError("mean takes one tensor, not a list of tensors: torch.mean raises",
                         "join them first: mean(concat(x)); or take the mean of each");
  }
  return apply(Operator::divide, sum_of("mean", items), static_cast<int64_t>(items.size()));
}

Value extreme_of(std::string_view function, Operator better, Arguments arguments) {
  if (is_one_tensor(arguments)) {
    return extreme(better, arguments[0].tensor());
  }
  const Arguments items = items_of(arguments);
  if (items.empty()) {
    throw OperationError(fmt::format("the {} of an empty list", function),
                         "guard it: if len(x) > 0");
  }
  const Value* best = items.data();
  for (const Value& item : items) {  // the first too: it may be of a type without an order
    if (condition_of(apply(better, item, *best))) {
      best = &item;
    }
  }
  return *best;
}

Value apply_min(Arguments arguments, const EvaluationLimits&) {
  return extreme_of("min", Operator::less, arguments);
}

Value apply_max(Arguments arguments, const EvaluationLimits&) {
  return extreme_of("max", Operator::greater, arguments);
}

Value apply_abs(Arguments arguments, const EvaluationLimits&) {
  const Value& value = arguments[0];
  switch (value.kind()) {
    case Kind::tensor: return absolute(value.tensor());
    case Kind::floating: return std::fabs(value.floating());
    case Kind::boolean: return apply(Operator::add, value, 0);
    case Kind::integer: return value.integer() < 0 ? negated(value) : value;
    case Kind::quantity: return value.quantity().count < 0 ? negated(value) : value;
    default: refuse("abs", value);
  }
}

Value apply_sqrt(Arguments arguments, const EvaluationLimits&) {
  if (arguments[0].is(Kind::tensor)) {
    return square_root(arguments[0].tensor());
  }
  if (!arguments[0].is_number()) {
    refuse("sqrt", arguments[0]);
  }
  if (arguments[0].number() < 0) {
    throw OperationError(
        fmt::format("a negative number, {}, has no square root", text_of(arguments[0])),
        "take max(x, 0) first");
  }
  return std::sqrt(arguments[0].number());
}

Value apply_exp(Arguments arguments, const EvaluationLimits&) {
  if (arguments[0].is(Kind::tensor)) {
    return exponential(arguments[0].tensor());
  }
  if (!arguments[0].is_number()) {
    refuse("exp", arguments[0]);
  }
  const double result = std::exp(arguments[0].number());
  if (!std::isfinite(result)) {
    throw OperationError(fmt::format("exp({}) is too large", text_of(arguments[0])),
                         "take min(x, 700) first");
  }
  return result;
}

Value apply_log(Arguments arguments, const EvaluationLimits&) {
  if (arguments[0].is(Kind::tensor)) {
    return logarithm(arguments[0].tensor());
  }
  if (!arguments[0].is_number()) {
    refuse("log", arguments[0]);
  }
  if (arguments[0].number() <= 0) {
    throw OperationError(fmt::format("{} has no logarithm", text_of(arguments[0])),
                         "only numbers above 0 have one");
  }
  return std::log(arguments[0].number());
}

Value apply_cos(Arguments arguments, const EvaluationLimits&) {
  if (!arguments[0].is_number()) {
    refuse("cos", arguments[0]);
  }
  return std::cos(arguments[0].number());
}

Value apply_where(Arguments arguments, const EvaluationLimits&) {
  if (!arguments[0].is(Kind::boolean)) {
    refuse("where", arguments[0], "its first argument is a condition: where(x < 0, 0, x)");
  }
  return arguments[0].boolean() ? arguments[1] : arguments[2];
}

Value joined_lists(const List& lists, const EvaluationLimits& limits) {
  List items;
  for (const Value& part : lists) {
    items.insert(items.end(), part.list().begin(), part.list().end());
    check_elements("concat", static_cast<int64_t>(items.size()), limits.list_items);
  }
  return items;
}

// A tensor of two or more dimensions is the list of its parts.
Value joined_rows(Tensor tensor) {
  const int64_t rows = tensor.shape.front();
  tensor.shape.erase(tensor.shape.begin());
  tensor.shape.front() *= rows;
  return tensor;
}

Value apply_concat(Arguments arguments, const EvaluationLimits& limits) {
  const Value& value = arguments[0];
  if (value.is(Kind::tensor) && value.tensor().shape.size() > 1) {
    return joined_rows(value.tensor());
  }
  if (!value.is(Kind::list)) {
    refuse("concat", value, "give it a list: concat([a, b])");
  }
  const List& items = value.list();
  if (!items.empty() && std::all_of(items.begin(), items.end(),
                                    [](const Value& item) { return item.is(Kind::list); })) {
    return joined_lists(items, limits);
  }
  std::vector<Tensor> parts;
  int64_t elements = 0;
  for (const Value& item : items) {
    elements += item.is(Kind::tensor) ? item.tensor().values.size() : 1;
    check_elements("concat", elements, limits.tensor_elements);
    parts.push_back(tensor_of(item));
  }
  return concat(parts);
}

Value apply_softmax(Arguments arguments, const EvaluationLimits&) {
  return softmax(tensor_of(arguments[0]));
}

Value apply_isnan(Arguments arguments, const EvaluationLimits&) {
  if (arguments[0].is(Kind::tensor)) {
    return is_nan(arguments[0].tensor());
  }
  if (!arguments[0].is_number()) {
    refuse("isnan", arguments[0]);
  }
  return std::isnan(arguments[0].number());
}

Value apply_int(Arguments arguments, const EvaluationLimits&) {
  const Value value = number_in("int", arguments[0]);
  if (!value.is(Kind::floating)) {
    return apply(Operator::add, value, 0);
  }
  const double whole = std::trunc(value.floating());
  if (!(whole >= -0x1p63 && whole < 0x1p63)) {
    throw OperationError(fmt::format("{} has no int of 64 bits", text_of(value)));
  }
  return static_cast<int64_t>(whole);
}

Value apply_float(Arguments arguments, const EvaluationLimits&) {
  return number_in("float", arguments[0]).number();
}

constexpr std::array<Function, 21> functions{{
    {"full", 2, 2, "full(n, x)", apply_full},
    {"arange", 1, 1, "arange(n)", apply_arange},
    {"range", 2, 2, "range(a, b)", apply_range},
    {"random", 0, 0, "random()", nullptr},
    {"len", 1, 1, "len(x)", apply_len},
    {"shape", 1, 1, "shape(x)", apply_shape},
    {"sum", 1, 1, "sum(x)", apply_sum},
    {"mean", 1, 1, "mean(x)", apply_mean},
    {"min", 1, -1, "min(x) or min(a, b)", apply_min},
    {"max", 1, -1, "max(x) or max(a, b)", apply_max},
    {"abs", 1, 1, "abs(x)", apply_abs},
    {"sqrt", 1, 1, "sqrt(x)", apply_sqrt},
    {"exp", 1, 1, "exp(x)", apply_exp},
    {"log", 1, 1, "log(x)", apply_log},
    {"cos", 1, 1, "cos(x)", apply_cos},
    {"where", 3, 3, "where(condition, a, b)", apply_where},
    {"concat", 1, 1, "concat([a, b])", apply_concat},
    {"softmax", 1, 1, "softmax(x)", apply_softmax},
    {"isnan", 1, 1, "isnan(x)", apply_isnan},
    {"int", 1, 1, "int(x)", apply_int},
    {"float", 1, 1, "float(x)", apply_float},
}};

}  // namespace

const Function* find_function(std::string_view name) {
  const auto found = std::ranges::find(functions, name, &Function::name);
  return found == functions.end() ? nullptr : &*found;
}

std::vector<std::string_view> function_names() {
  std::vector<std::string_view> names;
  for (const Function& function : functions) {
    names.push_back(function.name);
  }
  return names;
}

namespace {

Value item_with_key(const Map& map, const Value& key) {
  if (!key.is(Kind::text)) {
    throw OperationError(fmt::format("a key is text, not {}", type_of(key)), "write x['KEY']");
  }
  for (const auto& [name, item] : map) {
    if (name == key.text()) {
      return item;
    }
  }
  std::string known;
  for (size_t i = 0; i < std::min<size_t>(map.size(), 8); ++i) {
    known += (i == 0 ? "known keys: '" : ", '") + map[i].first + "'";
  }
  throw OperationError(fmt::format("there is no key {}", text_of(key)), std::move(known));
}

}  // namespace

Value at(const Value& value, const Value& index) {
  if (value.is(Kind::map)) {
    return item_with_key(value.map(), index);
  }
  if (value.is(Kind::tensor)) {
    return at(value.tensor(), integer_of(index, "an index"));
  }
  if (!value.is(Kind::list)) {
    throw OperationError(fmt::format("{} has no items to index", type_of(value)));
  }
  const int64_t asked = integer_of(index, "an index");
  const auto length = static_cast<int64_t>(value.list().size());
  const int64_t position = asked < 0 ? asked + length : asked;
  if (position < 0 || position >= length) {
    throw OperationError(fmt::format("index {} is out of range: the list has {} item{}", asked,
                                     length, length == 1 ? "" : "s"));
  }
  return value.list()[static_cast<size_t>(position)];
}

}  // namespace lockstep
