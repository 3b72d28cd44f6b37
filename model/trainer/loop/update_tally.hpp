#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/trainer/logging/run_log.hpp"

namespace lockstep {

/// Counts on one rank what the next update of the weights is made of.
class UpdateTally {
 public:
  /// What a log held of updates at one moment.
  struct Logged {
    size_t rows = 0;
    int64_t times_of_last = 0;
  };

  /// A training batch begins, of which this rank counts so many samples.
  void note_batch(int64_t samples) {
    samples_ += samples;
    ++batches_;
  }
  void note_forward() { has_forward_ = true; }  ///< of any stage
  /// Of a strategy that accumulates: how many of its micro-batches have begun.
  int64_t count_micro_batch() { return ++micro_batches_; }
  int64_t micro_batches() const { return micro_batches_; }

  /// What has come since the last update, or the beginning.
  struct SinceUpdate {
    int64_t samples = 0;
    int64_t batches = 0;
    bool operator==(const SinceUpdate&) const = default;
  };
  SinceUpdate since_update() const { return {samples_, batches_}; }
  /// The batches since the last update; the next begin anew.
  int64_t take_batches() { return std::exchange(batches_, 0); }
  /// An update has been made. Two optimizers that step one after the other make one step.
  void note_update(RankLog& log);
  /// All ranks have the model of one of them now (Strategy::join).
  void note_taken_over(RankLog& log);

  static Logged logged(const RankLog& log);
  /// Those that the log has got since.
  static std::vector<WeightUpdate> updates_since(const Logged& earlier, const RankLog& log);
  /// Counts periods that have been left out. `since`: the last update of each, if it `has_updates`,
  /// else its beginning.
  void leave_out(const SinceUpdate& since, bool has_updates, int64_t micro_batches, int64_t times) {
    samples_ = has_updates ? since.samples : samples_ + since.samples * times;
    batches_ = has_updates ? since.batches : batches_ + since.batches * times;
    micro_batches_ += micro_batches * times;
  }

 private:
  int64_t samples_ = 0;        ///< of training batches
  int64_t batches_ = 0;        ///< of the training
  bool has_forward_ = true;    ///< since the last update
  int64_t micro_batches_ = 0;  ///< of the training, where the strategy accumulates
};

}  // namespace lockstep
