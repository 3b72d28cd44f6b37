#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/core/ensure.hpp"
#include "model/core/units.hpp"
#include "model/core/values.hpp"
#include "model/expression/unit.hpp"

namespace lockstep {

class Value;

/// Row-major numbers; the product of `shape` is the number of values. Shape [] is one element.
/// Truth values are uint8, 0 or 1.
struct Tensor {
  std::vector<int64_t> shape;
  Values values;
  bool operator==(const Tensor&) const = default;
};

/// Names a thing that an expression can hand on but not look into.
struct Handle {
  enum class Kind : uint8_t { metric, group };
  Kind kind = Kind::metric;
  std::string name;
  bool operator==(const Handle&) const = default;
};

using List = std::vector<Value>;
/// Text keys in the order in which they were written.
using Map = std::vector<std::pair<std::string, Value>>;

/// The value of an expression. Immutable; copies of tensors, lists and maps share them.
/// A list or map nested deeper than `depth_limit`, or with more than `size_limit` values in all,
/// throws OperationError, so that whoever walks a value need not fear for stack or time.
class Value {
 public:
  enum class Kind : uint8_t {
    null,
    boolean,
    integer,
    floating,
    quantity,
    text,
    tensor,
    list,
    map,
    handle
  };
  static constexpr int depth_limit = 64;
  static constexpr int64_t size_limit = int64_t{1} << 22;

  Value() = default;
  template <class Number>
  requires std::integral<Number> &&(std::signed_integral<Number> || sizeof(Number) < 8)
      Value(Number number) {
    if constexpr (std::same_as<Number, bool>) {
      content_ = number;
    } else {
      content_ = static_cast<int64_t>(number);
    }
  }
  Value(double number) : content_(number) {}
  Value(AnyQuantity quantity) : content_(quantity) {}
  Value(Time time) : Value(AnyQuantity{QuantityKind::time, time.count()}) {}
  Value(Bytes bytes) : Value(AnyQuantity{QuantityKind::bytes, bytes.count()}) {}
  Value(BytesPerSecond rate) : Value(AnyQuantity{QuantityKind::rate, rate.count()}) {}
  Value(Flops flops) : Value(AnyQuantity{QuantityKind::flops, flops.count()}) {}
  Value(FlopsPerSecond rate) : Value(AnyQuantity{QuantityKind::flops_rate, rate.count()}) {}
  Value(std::string text) : content_(std::move(text)) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(Tensor tensor);
  Value(List list);
  Value(Map map);
  Value(Handle handle) : content_(std::move(handle)) {}

  Kind kind() const { return static_cast<Kind>(content_.index()); }
  bool is(Kind kind_asked) const { return kind() == kind_asked; }
  /// A bool, int or float: what arithmetic takes as a number.
  bool is_number() const { return content_.index() >= 1 && content_.index() <= 3; }

  // The content; the kind is ensured.
  bool boolean() const { return get<bool>(); }
  int64_t integer() const { return get<int64_t>(); }
  double floating() const { return get<double>(); }
  AnyQuantity quantity() const { return get<AnyQuantity>(); }
  const std::string& text() const { return get<std::string>(); }
  const Tensor& tensor() const { return *get<std::shared_ptr<const Tensor>>(); }
  const List& list() const;
  const Map& map() const;
  const Handle& handle() const { return get<Handle>(); }
  /// A bool, int or float as a float.
  double number() const;

  /// True for the same kind and content, floats bit for bit (so nan equals itself, and 1 is
  /// not 1.0). The operator `==` of expressions is `compare` in model/expression/arithmetic.hpp.
  bool operator==(const Value& other) const;

  /// Bytes that this value holds, shared or not; for limits.
  int64_t held_bytes() const;

 private:
  // Depth and size of what is below, so that limits are checked without a walk.
  struct Extent {
    int depth = 0;
    int64_t size = 1;
    void add(const Value& item);
  };
  struct ListNode;
  struct MapNode;
  Extent extent() const;
  template <class Content>
  const Content& get() const;

  std::variant<std::monostate, bool, int64_t, double, AnyQuantity, std::string,
               std::shared_ptr<const Tensor>, std::shared_ptr<const ListNode>,
               std::shared_ptr<const MapNode>, Handle>
      content_;
};

template <class Content>
const Content& Value::get() const {
  const Content* content = std::get_if<Content>(&content_);
  ensure(content != nullptr, "a value is read as what it is");
  return *content;
}

/// "int", "time", "tensor of shape [2, 3]": for messages.
std::string type_of(const Value& value);
/// As an expression would write it where it can; past `elements` numbers or items come dots.
std::string text_of(const Value& value, int64_t elements = 16);
/// Shortest decimal that reads back as the same fp64, with a point or exponent: "1.0", "0.1".
std::string text_of(double number);
std::string text_of_shape(const std::vector<int64_t>& shape);
/// PyTorch's own limit; it also bounds the recursion over dimensions.
inline constexpr size_t tensor_dimension_limit = 64;
/// Product of the shape; OperationError when negative, beyond int64 or of too many dimensions.
int64_t element_count(const std::vector<int64_t>& shape);

}  // namespace lockstep
