#include "model/expression/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/expression/evaluation_error.hpp"

namespace lockstep {

struct Value::ListNode {
  List items;
  Extent extent;
};
struct Value::MapNode {
  Map items;
  Extent extent;
};

const List& Value::list() const { return get<std::shared_ptr<const ListNode>>()->items; }
const Map& Value::map() const { return get<std::shared_ptr<const MapNode>>()->items; }

void Value::Extent::add(const Value& item) {
  const Extent below = item.extent();
  depth = std::max(depth, below.depth + 1);
  size += below.size;
  if (depth > depth_limit) {
    throw OperationError(fmt::format("a list is nested more than {} deep", depth_limit));
  }
  if (size > size_limit) {
    throw OperationError(fmt::format("a list holds more than {} values", size_limit),
                         "use a tensor: arange(n), full(n, x)");
  }
}

Value::Extent Value::extent() const {
  switch (kind()) {
    case Kind::list: return get<std::shared_ptr<const ListNode>>()->extent;
    case Kind::map: return get<std::shared_ptr<const MapNode>>()->extent;
    default: return {};
  }
}

Value::Value(Tensor tensor) {
  ensure(element_count(tensor.shape) == tensor.values.size(), "a tensor's shape fits its values");
  content_ = std::make_shared<const Tensor>(std::move(tensor));
}

Value::Value(List list) {
  Extent extent;
  for (const Value& item : list) {
    extent.add(item);
  }
  content_ = std::make_shared<const ListNode>(ListNode{std::move(list), extent});
}

Value::Value(Map map) {
  Extent extent;
  for (const auto& [key, item] : map) {
    extent.add(item);
  }
  content_ = std::make_shared<const MapNode>(MapNode{std::move(map), extent});
}

double Value::number() const {
  switch (kind()) {
    case Kind::boolean: return boolean() ? 1 : 0;
    case Kind::integer: return static_cast<double>(integer());
    default: return floating();
  }
}

bool Value::operator==(const Value& other) const {
  if (kind() != other.kind()) {
    return false;
  }
  switch (kind()) {
    case Kind::floating:
      return std::bit_cast<uint64_t>(floating()) == std::bit_cast<uint64_t>(other.floating());
    case Kind::tensor: return tensor() == other.tensor();
    case Kind::list: return list() == other.list();
    case Kind::map: return map() == other.map();
    default: return content_ == other.content_;
  }
}

int64_t Value::held_bytes() const {
  constexpr auto own = static_cast<int64_t>(sizeof(Value));
  switch (kind()) {
    case Kind::text: return own + static_cast<int64_t>(text().size());
    case Kind::tensor: return own + tensor().values.byte_size().count();
    case Kind::list: return own * (1 + static_cast<int64_t>(list().size()));
    case Kind::map: return own * (1 + 2 * static_cast<int64_t>(map().size()));
    default: return own;
  }
}

std::string text_of_shape(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

int64_t element_count(const std::vector<int64_t>& shape) {
  if (shape.size() > tensor_dimension_limit) {
    throw OperationError(fmt::format("a tensor has at most {} dimensions, not {}",
                                     tensor_dimension_limit, shape.size()));
  }
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) {
      throw OperationError(fmt::format("{} is not a shape of a tensor", text_of_shape(shape)));
    }
  }
  return elements;
}

std::string type_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: return "null";
    case Value::Kind::boolean: return "bool";
    case Value::Kind::integer: return "int";
    case Value::Kind::floating: return "float";
    case Value::Kind::quantity: return std::string(name_of(value.quantity().kind));
    case Value::Kind::text: return "text";
    case Value::Kind::tensor: return "tensor of shape " + text_of_shape(value.tensor().shape);
    case Value::Kind::list: return "list";
    case Value::Kind::map: return "map";
    case Value::Kind::handle:
      return value.handle().kind == Handle::Kind::metric ? "metric" : "group";
  }
  return "?";
}

std::string text_of(double number) {
  std::string text = fmt::format("{}", number);
  if (std::isfinite(number) && text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

namespace {

/// Writes a value, counting down how many elements may still be written.
class Writer {
 public:
  explicit Writer(int64_t elements) : left_(elements) {}
  void write(const Value& value);
  std::string text() && { return std::move(text_); }

 private:
  void write_quoted(std::string_view text);
  void write_tensor(const Tensor& tensor, size_t dimension, int64_t begin, int64_t count);
  // Whether one more element may be written; the first one that may not is written as dots.
  bool next(bool first);

  std::string text_;
  int64_t left_;
};

bool Writer::next(bool first) {
  text_ += first ? "" : ", ";
  if (left_-- > 0) {
    return true;
  }
  text_ += "...";
  return false;
}

void Writer::write_quoted(std::string_view text) {
  text_ += '\'';
  for (const char letter : text) {
    switch (letter) {
      case '\n': text_ += "\\n"; break;
      case '\t': text_ += "\\t"; break;
      case '\r': text_ += "\\r"; break;
      case '\'':
      case '\\': text_ += '\\'; [[fallthrough]];
      default: text_ += letter;
    }
  }
  text_ += '\'';
}

void Writer::write_tensor(const Tensor& tensor, size_t dimension, int64_t begin, int64_t count) {
  if (dimension == tensor.shape.size()) {
    text_ += is_floating(tensor.values.dtype()) ? text_of(tensor.values.number(begin))
                                                : fmt::to_string(tensor.values.integer(begin));
    return;
  }
  text_ += '[';
  const int64_t part = tensor.shape[dimension] == 0 ? 0 : count / tensor.shape[dimension];
  for (int64_t i = 0; i < tensor.shape[dimension] && next(i == 0); ++i) {
    write_tensor(tensor, dimension + 1, begin + i * part, part);
  }
  text_ += ']';
}

void Writer::write(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null: text_ += "null"; break;
    case Value::Kind::boolean: text_ += value.boolean() ? "true" : "false"; break;
    case Value::Kind::integer: text_ += fmt::to_string(value.integer()); break;
    case Value::Kind::floating: text_ += text_of(value.floating()); break;
    case Value::Kind::quantity: text_ += text_of(value.quantity()); break;
    case Value::Kind::text: write_quoted(value.text()); break;
    case Value::Kind::tensor:
      text_ += "tensor(";
      write_tensor(value.tensor(), 0, 0, value.tensor().values.size());
      text_ += fmt::format(", {})", name_of(value.tensor().values.dtype()));
      break;
    case Value::Kind::list:
      text_ += '[';
      for (size_t i = 0; i < value.list().size() && next(i == 0); ++i) {
        write(value.list()[i]);
      }
      text_ += ']';
      break;
    case Value::Kind::map:
      text_ += '{';
      for (size_t i = 0; i < value.map().size() && next(i == 0); ++i) {
        write_quoted(value.map()[i].first);
        text_ += ": ";
        write(value.map()[i].second);
      }
      text_ += '}';
      break;
    case Value::Kind::handle: text_ += type_of(value) + ' ' + value.handle().name; break;
  }
}

}  // namespace

std::string text_of(const Value& value, int64_t elements) {
  Writer writer(elements);
  writer.write(value);
  return std::move(writer).text();
}

}  // namespace lockstep
