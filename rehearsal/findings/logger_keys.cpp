#include "rehearsal/findings/logger_keys.hpp"

#include <algorithm>
#include <string_view>

namespace lockstep::cli {

std::string without_fork(const std::string& key) {
  const size_t end = std::min(key.size(), key.find("/dataloader_idx_"));
  for (const std::string_view fork : {"_step", "_epoch"}) {
    if (end > fork.size() && key.compare(end - fork.size(), fork.size(), fork) == 0) {
      return key.substr(0, end - fork.size()) + key.substr(end);
    }
  }
  return key;
}

bool is_of_stand_in(const std::vector<GlobalMetric>& logged, const std::string& key) {
  return std::ranges::any_of(logged, [&](const GlobalMetric& one) {
    return one.is_stand_in && (one.key == key || one.key == without_fork(key));
  });
}

}  // namespace lockstep::cli
