#include "cli/step_range.hpp"

#include <algorithm>

#include "io/scenario/reader/scalar.hpp"

namespace lockstep::cli {

std::optional<KeptSteps> step_range_of(const std::string& text) {
  constexpr int64_t most = 1'000'000'000'000'000;
  const size_t hyphen = std::min(text.find('-'), text.size());
  const auto first = parse_int(text.substr(0, hyphen));
  const auto last = hyphen == text.size() ? first : parse_int(text.substr(hyphen + 1));
  const auto* from = std::get_if<int64_t>(&first);
  const auto* to = std::get_if<int64_t>(&last);
  const bool is_range =
      from != nullptr && to != nullptr && *from >= 0 && *to >= *from && *to <= most;
  return is_range ? std::optional(KeptSteps{*from, *to}) : std::nullopt;
}

}  // namespace lockstep::cli
