#pragma once

#include <source_location>

namespace lockstep {

/// Ends the process with the place and the reason. For bugs of Lockstep only: whatever a user or
/// the world can cause is a value or an exception that carries its site.
[[noreturn]] void abort_for_bug(const char* what, std::source_location where);

/// An invariant of our own code; checked in every build type.
constexpr void ensure(bool holds, const char* what,
                      std::source_location where = std::source_location::current()) {
  if (!holds) [[unlikely]] {
    abort_for_bug(what, where);
  }
}

}  // namespace lockstep
