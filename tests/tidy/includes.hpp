#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::tidy {

/// One #include of a source text.
struct Include {
  std::string target;  ///< what stands between the brackets or quotes
  bool is_quoted = false;
  size_t position = 0;  ///< where its line begins
};

std::vector<Include> includes_of(std::string_view text);

}  // namespace lockstep::tidy
