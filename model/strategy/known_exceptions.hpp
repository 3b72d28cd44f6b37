#pragma once

#include <string_view>

#include "model/core/site.hpp"

namespace lockstep {

/// Of exceptions for how the model is wrapped.
inline constexpr std::string_view wrapping_code = "LS503";

/// An exception of a framework that a strategy raises at a site of its own: how findings tell it.
struct KnownException {
  std::string_view site;
  std::string_view code;
  std::string_view fix;
};

/// Null: a different place.
const KnownException* known_exception(SiteId site);

}  // namespace lockstep
