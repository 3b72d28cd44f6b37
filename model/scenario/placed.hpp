#pragma once

#include <optional>
#include <utility>

#include "model/expression/source.hpp"

namespace lockstep {

/// A value and where the scenario says it. A default has a place without a line.
template <class T>
struct Placed {
  T value{};
  SourcePlace place{};
};

/// A key that may be absent; `with_defaults` fills it.
template <class T>
using Given = std::optional<Placed<T>>;

/// The given value, or `fallback`.
template <class T>
T value_or(const Given<T>& given, T fallback) {
  return given ? given->value : std::move(fallback);
}

}  // namespace lockstep
