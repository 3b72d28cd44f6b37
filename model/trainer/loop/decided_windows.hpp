#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// What the windows of a pass over training data decide by counters: stretches of windows that
/// decide alike.
class DecidedWindows {
 public:
  /// `kinds`: by window, negative ones of one window each; empty: nothing is decided.
  /// `of_all_ranks`: they are kinds of what all ranks decide. Else only their changes are known to
  /// be the same.
  DecidedWindows(const std::vector<int64_t>& kinds, bool of_all_ranks);

  /// All are of one kind.
  bool are_alike() const { return stretches_.size() <= 1; }
  int64_t kind_of(int64_t window) const;
  /// How many windows from this one on are of its kind.
  int64_t alike_from(int64_t window) const;
  /// Whether what is known of windows before tells nothing of this one.
  bool is_break(int64_t window) const;
  /// The first such window behind this one; TrainerSettings::no_limit: there is none.
  int64_t next_break(int64_t window) const;

 private:
  struct Stretch {
    int64_t begin = 0;
    int64_t kind = 0;
  };
  const Stretch& stretch_of(int64_t window) const;

  std::vector<Stretch> stretches_;  ///< ascending
  std::vector<int64_t> breaks_;     ///< ascending
  int64_t windows_ = 0;
};

}  // namespace lockstep
