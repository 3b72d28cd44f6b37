#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/core/site.hpp"
#include "model/core/units.hpp"

namespace lockstep::cli {

/// One way in which a run may go where that is free. Where the lists end, the first way is taken.
struct Schedule {
  std::vector<uint32_t> free_choices;  ///< of `unknown` conditions, in the order they come up
  uint32_t other_choices = 0;          ///< behind them: 1 = every `unknown` is true
  std::vector<uint32_t> sources;       ///< of receives from any source, by turn
  bool sources_last = false;           ///< these take one of all messages that may come
  std::optional<uint64_t> tie_seed;    ///< of the order of what happens at the same time
  Time drawn_before = Time::max();     ///< only of what happens earlier
  int32_t late_rank = -1;              ///< this rank starts `lateness` after the others
  Time lateness{};

  /// Some of what is free is decided by chance, or by these lists, up to the end of the run.
  bool is_drawn() const {
    return (tie_seed && drawn_before == Time::max()) || sources_last || !sources.empty() ||
           !free_choices.empty() || other_choices != 0;
  }
  bool operator==(const Schedule&) const = default;
};

/// A free choice as a run met it.
struct FreeChoice {
  int32_t rank = 0;
  SiteId site{};
  uint32_t alternatives = 2;
  uint32_t taken = 0;
};

}  // namespace lockstep::cli
