#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/expression/expression.hpp"
#include "model/expression/source.hpp"

namespace lockstep {

struct PlainEntry;

/// An argument's value as the scenario writes it. The format gives it no unit and no meaning: what
/// `bucket_cap_mb: 25` is, its strategy knows.
struct PlainValue {
  using List = std::vector<PlainValue>;
  using Map = std::vector<PlainEntry>;
  /// An expression where the argument is a function.
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Map, Expression> value;
  SourcePlace place{};

  bool is_null() const { return std::holds_alternative<std::monostate>(value); }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&value);
  }
  /// An int or a float as a float.
  std::optional<double> number() const;
};

struct PlainEntry {
  std::string key;
  PlainValue value;
  SourcePlace key_place{};
};

/// "25", "[1, 2]", "{monitor: val_loss}": as YAML in flow style.
std::string text_of(const PlainValue& value);

struct ObjectArgument {
  std::string name;  ///< empty for a positional argument
  PlainValue value;
  SourcePlace place{};
};

/// A thing with arguments: a strategy, a callback, an optimizer, a metric, a layer, a launcher.
struct Object {
  std::string name;
  std::vector<ObjectArgument> arguments;  ///< in the order of the file, positional ones first
  SourcePlace place{};

  /// The named argument, or null.
  const PlainValue* find(std::string_view argument) const;
  /// The argument of this name, else the one at this position.
  const PlainValue* find(std::string_view argument, size_t position) const;
};

/// Reads a value as an object, where an argument holds one (`algorithm: {Async: {..}}`): a name, a
/// map of one key, or `class_path` with `init_args`. Nothing when it is none of these.
std::optional<Object> as_object(const PlainValue& value);

}  // namespace lockstep
