#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/core/place.hpp"
#include "model/expression/value.hpp"
#include "model/trainer/loop/repetition.hpp"

namespace lockstep {

/// What the statements of a training decide by the counters of its loops, on one rank: batches to
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

  /// The repetition outlives it.
  CountedDecisions(const Repetition& repetition, const Place& place);

  bool empty() const { return repetition_.counted.empty(); }
  /// Whether some of them depends on this counter.
  bool uses(std::string_view counter) const;
  /// A number for what is decided: equal numbers stand for equal values. Of very many different
  /// ones, and where an expression has no value, each batch has a number of its own.
  int64_t kind_of(const Counters& counters);
  /// The same of every batch of a pass that begins with these counters. `window`: batches of a
  /// step; 0: the pass takes none.
  std::vector<int64_t> kinds_of_pass(Counters first, int64_t window);
  /// The same of a pass over training data; kept where every pass decides alike.
  const std::vector<int64_t>& of_pass(const Counters& first, int64_t window);

 private:
  std::vector<Value> values_at(const Counters& counters) const;

  const Repetition& repetition_;
  Place place_;
  std::vector<std::vector<Value>> known_;  ///< by kind
  std::vector<int64_t> pass_;              ///< the last that of_pass() was asked for
  int64_t strangers_ = 0;                  ///< kinds of which each is of one batch
};

/// The first batch from `number` on that does not decide as the one `length` before it; their
/// number if there is none.
int64_t next_other_decision(const std::vector<int64_t>& kinds, int64_t number, int64_t length);

}  // namespace lockstep
