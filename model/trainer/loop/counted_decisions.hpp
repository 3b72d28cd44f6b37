#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "model/core/place.hpp"
#include "model/expression/value.hpp"
#include "model/trainer/loop/repetition.hpp"

namespace lockstep {

/// What the statements of a training decide by the counters of its loops, on some ranks: batches to
/// which they all give the same values do the same.
class CountedDecisions {
 public:
  /// What the names of expressions see in one batch.
  struct Counters {
    int64_t epoch = 0;
    int64_t batch = 0;
    int64_t step = 0;  ///< global_step, before the step of this batch
    int64_t batches = 0;
    bool steps = false;  ///< the optimizer steps in this batch
    bool is_last = false;
  };

  /// The repetition outlives it. `places`: of the ranks.
  CountedDecisions(const Repetition& repetition, std::vector<Place> places);

  bool empty() const { return repetition_.counted.empty(); }
  /// Whether some of them depends on this counter.
  bool uses(std::string_view counter) const;
  /// A number for what is decided: equal numbers stand for equal values. Of very many different
  /// ones, and where an expression has no value, each batch has a number of its own.
  int64_t kind_of(const Counters& counters);
  /// The same of every batch of a pass that begins with these counters. `window`: batches of a
  /// step; 0: the pass takes none.
  std::vector<int64_t> kinds_of_pass(Counters first, int64_t window);
  /// The same of every window of a pass over training data, of which the last may be cut short:
  /// below windows_max, or negative. Kept where every pass decides alike.
  const std::vector<int64_t>& windows_of_pass(const Counters& first, int64_t window);
  static constexpr int64_t windows_max = 1 << 16;

 private:
  std::vector<Value> values_at(const Counters& counters) const;
  int64_t kind_of_window(std::vector<int64_t> batches);

  const Repetition& repetition_;
  std::vector<Place> places_;
  std::vector<std::vector<Value>> known_;  ///< by kind
  std::map<std::vector<int64_t>, int64_t> known_windows_;
  std::vector<int64_t> windows_;  ///< the last that windows_of_pass() was asked for
  int64_t batches_ = -1;          ///< of that pass
  int64_t strangers_ = 0;         ///< kinds of which each is of one batch
};

}  // namespace lockstep
