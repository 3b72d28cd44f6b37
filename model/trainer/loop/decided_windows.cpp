#include "model/trainer/loop/decided_windows.hpp"

#include <algorithm>

#include "model/trainer/loop/training_program.hpp"

namespace lockstep {

DecidedWindows::DecidedWindows(const std::vector<int64_t>& kinds, bool of_all_ranks)
    : windows_(std::ssize(kinds)) {
  int64_t last = 0;
  for (int64_t window = 0; window < windows_; ++window) {
    const int64_t kind = kinds[static_cast<size_t>(window)];
    const bool changes = window > 0 && kind != last;
    const bool is_strange = kind < 0 || last < 0;
    if (of_all_ranks ? is_strange : changes) {
      breaks_.push_back(window);
    }
    if (window == 0 || (changes && of_all_ranks)) {
      stretches_.push_back({window, of_all_ranks ? std::max<int64_t>(kind, 0) : 0});
    }
    last = kind;
  }
}

const DecidedWindows::Stretch& DecidedWindows::stretch_of(int64_t window) const {
  return *std::prev(std::ranges::upper_bound(stretches_, window, {}, &Stretch::begin));
}

int64_t DecidedWindows::kind_of(int64_t window) const {
  return stretches_.empty() ? 0 : stretch_of(window).kind;
}

int64_t DecidedWindows::alike_from(int64_t window) const {
  const auto next = std::ranges::upper_bound(stretches_, window, {}, &Stretch::begin);
  return stretches_.empty()         ? TrainerSettings::no_limit
         : next == stretches_.end() ? windows_ - window
                                    : next->begin - window;
}

bool DecidedWindows::is_break(int64_t window) const {
  return std::ranges::binary_search(breaks_, window);
}

int64_t DecidedWindows::next_break(int64_t window) const {
  const auto next = std::ranges::upper_bound(breaks_, window);
  return next == breaks_.end() ? TrainerSettings::no_limit : *next;
}

}  // namespace lockstep
