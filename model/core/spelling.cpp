#include "model/core/spelling.hpp"

#include <algorithm>
#include <cctype>

namespace lockstep {
namespace {
constexpr size_t longest_word = 64;

char lower(char letter) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}
}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = static_cast<int>(i + j);
        continue;
      }
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      cost[i][j] =
          std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::string nearest_spelling(std::string_view word, const std::vector<std::string_view>& legal) {
  if (word.size() > longest_word) {
    return {};
  }
  std::string_view nearest;
  int least = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string_view candidate : legal) {
    const auto longer = std::max(word.size(), candidate.size());
    if (longer - std::min(word.size(), candidate.size()) >= static_cast<size_t>(least)) {
      continue;  // each letter more or less costs one
    }
    const int distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return std::string(nearest);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& legal) {
  const std::string nearest = nearest_spelling(word, legal);
  return nearest.empty() ? nearest : "did you mean `" + nearest + "`?";
}

}  // namespace lockstep
