#include "io/scenario/names/spelling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "io/scenario/names/familiar_words.hpp"

namespace lockstep {

std::string spelling_remedy(std::string_view word, const std::vector<std::string_view>& legal) {
  const std::string familiar = familiar_word(word, legal);
  const std::string nearest = familiar.empty() ? nearest_spelling(word, legal) : familiar;
  if (!nearest.empty()) {
    return fmt::format("did you mean `{}`?", nearest);
  }
  constexpr size_t shown = 24;
  if (legal.size() > shown) {
    const std::vector<std::string_view> first(legal.begin(), legal.begin() + shown);
    return fmt::format("expected one of: {}, ..", fmt::join(first, ", "));
  }
  return legal.empty() ? std::string() : fmt::format("expected one of: {}", fmt::join(legal, ", "));
}

}  // namespace lockstep
