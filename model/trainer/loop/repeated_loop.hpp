#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "model/trainer/loop/training.hpp"

namespace lockstep {

/// Whether a loop does in every pass, of any epoch, what it does in the others, as far as the
/// program and the strategy say.
bool passes_are_alike(Training& training);

/// The passes of a loop of a fit, as one level of periods of the world.
class RepeatedLoop {
 public:
  /// How many rows a logger gets in a period, by kind.
  using RowsByKind = std::map<int64_t, int64_t>;

  /// `length`: passes of a period. `rows`: where they are of several kinds; outlives the loop.
  RepeatedLoop(Training& training, int32_t level, int64_t length, RowsByKind* rows = nullptr)
      : training_(training), level_(level), length_(length), rows_(rows) {}

  /// Said before each pass: `was_alike`: the period before is of a known kind, as those up to
  /// `until` are. Gives how many passes the world has left out, which are counted; the loop goes on
  /// behind them. `kind`: PeriodStart::kind.
  int64_t left_out(int64_t pass, bool was_alike, int64_t until, int64_t kind);
  /// The same of periods of several kinds, of which some give the logger a row more than others.
  int64_t left_out(int64_t pass, bool was_alike, int64_t until, const PeriodKinds& kinds);
  int64_t length() const { return length_; }

 private:
  int64_t leave_out(int64_t pass, PeriodStart start);
  /// That the logger gets in the next periods.
  int64_t rows_of(const PeriodKinds& kinds, int64_t periods) const;

  Training& training_;
  int32_t level_;
  int64_t length_;
  RowsByKind* rows_;
  std::optional<int64_t> last_;  ///< the pass that began a period last
  std::optional<int64_t> kind_of_last_;
  Counted at_last_;
};

}  // namespace lockstep
