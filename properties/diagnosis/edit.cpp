#include "properties/diagnosis/edit.hpp"

#include <algorithm>

namespace lockstep {

namespace {

constexpr size_t window_before = 256;
constexpr size_t window_after = 256;
// Among edits of equal price the one with fewer free steps keeps more calls paired.
constexpr uint32_t cost_of_free_call = 2;
// Between an exchange of two calls and two changed arguments the exchange is meant.
constexpr uint32_t cost_of_other_place = 1;
constexpr uint32_t cost_of_call = 1u << 13;
// A little more than half a call: one more turn of a loop explains more than calls of the next loop
// that happen to fit.
constexpr uint32_t cost_of_site = cost_of_call / 2 + 16;
constexpr uint32_t impossible = 1u << 30;

// A table of costs from every pair of positions to the ends.
class Alignment {
 public:
  Alignment(const CallSequence& left, const CallSequence& right)
      : left_(left),
        right_(right),
        width_(right.calls.size() + 1),
        costs_((left.calls.size() + 1) * width_, 0) {
    for (size_t i = left.calls.size() + 1; i-- > 0;) {
      for (size_t j = width_; j-- > 0;) {
        if (i < left.calls.size() || j < right.calls.size()) {
          at(i, j) = std::min({pair(i, j), only_left(i, j), only_right(i, j)});
        }
      }
    }
  }

  // The cost from here on when the next step pairs both calls, or takes one of them alone.
  uint32_t pair(size_t i, size_t j) const {
    if (i >= left_.calls.size() || j >= right_.calls.size()) {
      return impossible;
    }
    const Call& a = left_.calls[i];
    const Call& b = right_.calls[j];
    if (a.kind != b.kind) {
      return impossible;
    }
    // A different argument is one edit, whether the calls are in one statement or in two branches.
    if (!a.same_arguments(b)) {
      return at(i + 1, j + 1) + cost_of_call + (a.site == b.site ? 0 : cost_of_other_place);
    }
    return at(i + 1, j + 1) + (a.site == b.site ? 0 : cost_of_site);
  }
  uint32_t only_left(size_t i, size_t j) const {
    return i >= left_.calls.size()
               ? impossible
               : at(i + 1, j) + (left_is_free(j) ? cost_of_free_call : cost_of_call);
  }
  uint32_t only_right(size_t i, size_t j) const {
    return j >= right_.calls.size()
               ? impossible
               : at(i, j + 1) + (right_is_free(i) ? cost_of_free_call : cost_of_call);
  }
  bool left_is_free(size_t j) const { return right_.open && j >= right_.calls.size(); }
  bool right_is_free(size_t i) const { return left_.open && i >= left_.calls.size(); }

  // Nothing that comes on one side comes on the other: the costs say nothing.
  bool nothing_in_common(size_t i, size_t j) const {
    for (size_t a = i; a < left_.calls.size(); ++a) {
      for (size_t b = j; b < right_.calls.size(); ++b) {
        if (left_.calls[a].same_arguments(right_.calls[b])) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  uint32_t& at(size_t i, size_t j) { return costs_[i * width_ + j]; }
  uint32_t at(size_t i, size_t j) const { return costs_[i * width_ + j]; }

  CallSequence left_;
  CallSequence right_;
  size_t width_;
  std::vector<uint32_t> costs_;
};

// Whether to take the left call alone (negative), the right one (positive), or to pair them (0).
int first_step(const Alignment& table, size_t i, size_t j, const EditJudges& judges,
               const CallSequence& left, const CallSequence& right) {
  const uint32_t pair = table.pair(i, j);
  const uint32_t only_left = table.only_left(i, j);
  const uint32_t only_right = table.only_right(i, j);
  const bool both = i < left.calls.size() && j < right.calls.size();
  const bool equal = both && left.calls[i].same_arguments(right.calls[j]) &&
                     left.calls[i].site == right.calls[j].site;
  if (both && !equal) {
    if (const int blamed = judges.evidence(i, j); blamed != 0) {
      return blamed;
    }
  }
  if (pair <= std::min(only_left, only_right)) {
    return 0;
  }
  const bool undecided =
      only_left == only_right || (left.open && right.open && table.nothing_in_common(i, j));
  if (both && undecided) {
    if (const int blamed = judges.habit(i, j); blamed != 0) {
      return blamed;
    }
  }
  return only_left <= only_right ? -1 : 1;
}

size_t first_difference(const CallSequence& left, const CallSequence& right) {
  const size_t shorter = std::min(left.calls.size(), right.calls.size());
  size_t at = 0;
  while (at < shorter && left.calls[at].same_arguments(right.calls[at])) {
    ++at;
  }
  return at;
}

CallSequence window(const CallSequence& whole, size_t begin, size_t end) {
  end = std::min(end, whole.calls.size());
  begin = std::min(begin, end);
  return {whole.calls.subspan(begin, end - begin), whole.open || end < whole.calls.size()};
}

}  // namespace

std::vector<Edit> smallest_edit(const CallSequence& whole_left, const CallSequence& whole_right,
                                const EditJudges& judges) {
  const size_t difference = first_difference(whole_left, whole_right);
  const size_t begin = difference - std::min(difference, window_before);
  const CallSequence left = window(whole_left, begin, difference + window_after);
  const CallSequence right = window(whole_right, begin, difference + window_after);
  const Alignment table(left, right);
  const EditJudges shifted{
      [&](size_t i, size_t j) { return judges.evidence(begin + i, begin + j); },
      [&](size_t i, size_t j) { return judges.habit(begin + i, begin + j); }};
  const EditJudges silent{[](size_t, size_t) { return 0; }, [](size_t, size_t) { return 0; }};

  std::vector<Edit> edits;
  size_t i = 0;
  size_t j = 0;
  while (i < left.calls.size() || j < right.calls.size()) {
    const int step = first_step(table, i, j, edits.empty() ? shifted : silent, left, right);
    if (step == 0) {
      if (!left.calls[i].same_arguments(right.calls[j])) {
        edits.push_back({EditKind::arguments, begin + i, begin + j, false});
      }
      ++i;
      ++j;
    } else if (step < 0) {
      edits.push_back({EditKind::only_left, begin + i, begin + j, table.left_is_free(j)});
      ++i;
    } else {
      edits.push_back({EditKind::only_right, begin + i, begin + j, table.right_is_free(i)});
      ++j;
    }
  }
  return edits;
}

}  // namespace lockstep
