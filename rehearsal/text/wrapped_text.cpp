#include "rehearsal/text/wrapped_text.hpp"

#include <algorithm>

namespace lockstep::cli {

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    size_t space = text.rfind(' ', width);
    if (space == text.npos || space == 0) {
      space = std::min(text.find(' ', width), text.size());
    }
    lines.emplace_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  if (!text.empty() || lines.empty()) {
    lines.emplace_back(text);
  }
  return lines;
}

}  // namespace lockstep::cli
