#include "model/core/ensure.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

namespace lockstep {

void abort_for_bug(const char* what, std::source_location where) {
  fmt::print(stderr, "lockstep: internal error: {}\n  at {}:{} in {}\n", what, where.file_name(),
             where.line(), where.function_name());
  std::fflush(stderr);
  std::abort();
}

}  // namespace lockstep
