#include "rehearsal/measure/largest_batch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::cli {

namespace {

/// What is left over is for the other variants.
constexpr int64_t operations_of_search = Prober::operations_max / 4 * 3;
/// Memory is nearly linear in the batch size, so a line through two sizes finds the place soon;
/// where it does not, halving does.
constexpr int line_steps_max = 8;

bool has_limit(const Results& results) {
  return !results.ranks.empty() && results.ranks.front().memory.capacity != Bytes::max();
}

struct Point {
  int64_t batch_size = 0;
  Bytes needed{};  ///< of the fullest rank
};

class BatchSearch {
 public:
  BatchSearch(Prober& prober, Advice& advice, int64_t multiple)
      : prober_(prober),
        advice_(advice),
        multiple_(multiple),
        limit_(prober.largest_listed() / multiple) {}

  void run(int64_t first) {
    for (int64_t next = first; next > 0; next = next_size()) {
      if (!prober_.affordable(operations_of_search)) {
        tell_end_of_budget();
        return;
      }
      foresee_after(next);
      const Probe& short_run = prober_.probe_batch_size(next * multiple_);
      if (!short_run.failure.empty()) {
        advice_.why_no_batch_size =
            fmt::format("with batch_size {} {}", next * multiple_, short_run.failure);
        return;
      }
      if (prober_.stopped()) {
        return;
      }
      note(next, short_run);
    }
    if (bad_ > 0) {
      advice_.largest_batch_size = good_ * multiple_;
    }
  }

 private:
  void note(int64_t batch_size, const Probe& short_run) {
    ++tried_;
    if (!fits(short_run)) {
      bad_ = batch_size;
      return;
    }
    good_ = batch_size;
    Point point{batch_size, {}};
    for (const RankResults& rank : short_run.results->ranks) {
      capacity_ = rank.memory.capacity;
      point.needed = std::max(point.needed, rank.memory.peak + rank.reserve);
    }
    before_ = last_;
    last_ = point;
  }

  // Where this one fits, its double is next as long as there is no line, and then the size behind
  // it, which should not fit.
  void foresee_after(int64_t batch_size) {
    const bool has_line = before_.batch_size > 0;
    const int64_t after = tried_ == 0 ? std::min(batch_size * 2, limit_) : batch_size + 1;
    if ((tried_ == 0 || has_line) && after > batch_size && after <= limit_ &&
        (bad_ == 0 || after < bad_)) {
      prober_.foresee_batch_size(after * multiple_);
    }
  }

  // 0: there is nothing left to try.
  int64_t next_size() const {
    if (bad_ > 0 ? bad_ - good_ <= 1 : good_ >= limit_) {
      return 0;
    }
    const bool has_line = before_.batch_size > 0 && last_.needed > before_.needed;
    const int64_t on_line =
        has_line && tried_ <= line_steps_max ? std::max(by_line(), good_ + 1) : 0;
    if (bad_ == 0) {
      return std::min(on_line > 0 ? on_line : good_ * 2, limit_);
    }
    // Beyond what is known not to fit the line says nothing.
    return on_line > 0 && on_line < bad_ ? on_line : good_ + (bad_ - good_) / 2;
  }

  int64_t by_line() const {
    const auto left = static_cast<double>((capacity_ - last_.needed).count());
    const auto more = static_cast<double>((last_.needed - before_.needed).count());
    const auto sizes = static_cast<double>(last_.batch_size - before_.batch_size);
    return last_.batch_size + static_cast<int64_t>(std::min(left / more * sizes, 1e9));
  }

  void tell_end_of_budget() {
    if (!prober_.stopped()) {
      advice_.why_no_batch_size = prober_.why_not_affordable();
      advice_.why_no_batch_size += good_ > 0 ? fmt::format("; {} fits", good_ * multiple_) : "";
    }
  }

  Prober& prober_;
  Advice& advice_;
  int64_t multiple_;  ///< sizes below are so many times smaller than batches
  int64_t limit_;
  int64_t good_ = 0;
  int64_t bad_ = 0;  ///< 0: none yet
  int tried_ = 0;
  Bytes capacity_{};
  Point before_;
  Point last_;
};

}  // namespace

void find_largest_batch(Prober& prober, Advice& advice) {
  if (!prober.may_change_batch() || !has_limit(prober.rehearsal().results)) {
    return;
  }
  const int64_t own = prober.loader()->batch_size->value;
  const int64_t multiple = prober.rehearsal().run.preparation.batch_size_multiple;
  if (prober.may_list(own)) {
    BatchSearch(prober, advice, multiple).run(std::max<int64_t>(1, own / multiple));
  }
}

}  // namespace lockstep::cli
