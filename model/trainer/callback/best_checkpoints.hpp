#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/trainer/callback/callback_settings.hpp"

namespace lockstep {

/// The k best checkpoints as one rank sees them (model_checkpoint.py, best_k_models). Scores are
/// fp32; of equal ones the first is kept.
class BestCheckpoints {
 public:
  /// `most`: -1 keeps all.
  BestCheckpoints(MonitorMode mode, int64_t most) : mode_(mode), most_(most) {}

  /// Fewer than k are kept, so that any value is good enough.
  bool has_room() const { return most_ == -1 || std::ssize(kept_) < most_; }
  /// Whether a value beats the worst that is kept. Only where there is no room.
  bool beats_worst(double value) const;
  /// Makes room: forgets the worst and returns its name; nothing where there is room.
  std::optional<std::string> drop_worst();
  /// Keeps a file; NaN counts as the worst of all.
  void add(const std::string& file, double value);

  const std::string& best() const { return best_; }
  std::optional<double> best_score() const;
  const std::vector<std::pair<std::string, float>>& kept() const { return kept_; }

 private:
  bool is_better(float value, float than) const {
    return mode_ == MonitorMode::min ? value < than : value > than;
  }
  const float* score_of(const std::string& file) const;

  MonitorMode mode_;
  int64_t most_;
  std::vector<std::pair<std::string, float>> kept_;  ///< in the order in which they came
  std::string worst_;                                ///< known once k are kept
  std::string best_;
};

}  // namespace lockstep
