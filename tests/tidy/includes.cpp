#include "tests/tidy/includes.hpp"

#include <algorithm>

#include "tests/tidy/source.hpp"

namespace lockstep::tidy {

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> includes;
  for (size_t line = 0; line < text.size();) {
    const size_t line_end = std::min(text.find('\n', line), text.size());
    size_t at = skip_space(text, line);
    if (at < line_end && text[at] == '#') {
      at = skip_space(text, at + 1);
      const size_t open = text.find_first_of("<\"", at);
      if (text.substr(at).starts_with("include") && open < line_end) {
        const size_t close = text.find(text[open] == '<' ? '>' : '"', open + 1);
        includes.push_back(
            {std::string(text.substr(open + 1, close - open - 1)), text[open] == '"', line});
      }
    }
    line = line_end + 1;
  }
  return includes;
}

}  // namespace lockstep::tidy
