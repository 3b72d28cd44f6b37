#include "model/trainer/callback/best_checkpoints.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/core/ensure.hpp"

namespace lockstep {

const float* BestCheckpoints::score_of(const std::string& file) const {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) { return one.first == file; });
  return found == kept_.end() ? nullptr : &found->second;
}

bool BestCheckpoints::beats_worst(double value) const {
  const float* const worst = score_of(worst_);
  ensure(worst != nullptr, "asked for the worst checkpoint while there is room");
  return is_better(static_cast<float>(value), *worst);
}

std::optional<std::string> BestCheckpoints::drop_worst() {
  if (has_room()) {
    return std::nullopt;
  }
  std::erase_if(kept_, [this](const auto& one) { return one.first == worst_; });
  return worst_;
}

void BestCheckpoints::add(const std::string& file, double value) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  auto score = static_cast<float>(value);
  if (std::isnan(score)) {
    score = mode_ == MonitorMode::min ? infinity : -infinity;
  }
  const auto known =
      std::find_if(kept_.begin(), kept_.end(), [&](const auto& one) { return one.first == file; });
  if (known != kept_.end()) {
    known->second = score;
  } else {
    kept_.emplace_back(file, score);
  }
  const auto worse = [this](const auto& one, const auto& than) {
    return is_better(than.second, one.second);
  };
  const auto better = [this](const auto& one, const auto& than) {
    return is_better(one.second, than.second);
  };
  if (most_ == -1 || std::ssize(kept_) == most_) {
    worst_ = std::min_element(kept_.begin(), kept_.end(), worse)->first;
  }
  best_ = std::min_element(kept_.begin(), kept_.end(), better)->first;
}

std::optional<double> BestCheckpoints::best_score() const {
  const float* const score = score_of(best_);
  return score == nullptr ? std::nullopt : std::optional<double>(*score);
}

}  // namespace lockstep
