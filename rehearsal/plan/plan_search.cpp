#include "rehearsal/plan/plan_search.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace lockstep::cli {

namespace {

double speed_of(const SweepRow& row) {
  const Value speed = value_in(row, "throughput");
  return speed.is_number() ? speed.number() : 0;
}

/// How many times four times as long as a second or so a simulation takes.
int expense_of(const Layout& layout) {
  constexpr int64_t blocks_of_a_second = 4'096;
  int expense = 0;
  for (int64_t blocks = blocks_of_a_second; blocks < layout.simulated_blocks; blocks *= 4) {
    ++expense;
  }
  return expense;
}

double speed_of_tried(const TriedLayout& tried) { return speed_of(tried.row); }

/// Chooses what is simulated next, and notes what came of it.
class PlanSearch {
 public:
  PlanSearch(const LayoutTask& task, const std::vector<Layout>& layouts,
             const SearchOptions& options)
      : task_(task), layouts_(layouts), options_(options), order_(layouts.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::stable_sort(order_, {}, [&](size_t index) {
      return std::pair(expense_of(layouts_[index]), layouts_[index].least_time);
    });
    result_.layouts = std::ssize(layouts);
  }

  PlanResult run(const RunWave& run_wave);

 private:
  std::vector<size_t> choose();
  /// Why it is not simulated, as the count of it; null: it is.
  int64_t* count_without(const Layout& layout);
  void take(const Layout& layout, SweepRow row);
  bool is_too_slow(const Layout& layout) const;

  const LayoutTask& task_;
  const std::vector<Layout>& layouts_;
  const SearchOptions& options_;
  std::vector<size_t> order_;
  size_t next_ = 0;
  bool has_time_ = true;
  std::map<int64_t, std::vector<int64_t>> fitting_;  ///< micro-batches that fit, by family
  std::map<int64_t, int64_t> too_large_;             ///< the smallest that does not, by family
  std::vector<double> speeds_;                       ///< samples/s of those that fit, descending
  PlanResult result_;
};

/// Whether it cannot be among the fastest that are asked for, even if it took its least time.
bool PlanSearch::is_too_slow(const Layout& layout) const {
  const auto top = static_cast<size_t>(options_.top);
  if (layout.least_time <= Time{} || speeds_.size() < top) {
    return false;
  }
  return static_cast<double>(task_.samples) / seconds(layout.least_time) < speeds_[top - 1];
}

int64_t* PlanSearch::count_without(const Layout& layout) {
  constexpr int64_t enough = 2;
  const bool has_limit = task_.device_memory > Bytes{};
  if (has_limit && layout.model_states > task_.device_memory) {
    return &result_.too_large;
  }
  if (has_limit && layout.least_memory > task_.device_memory) {
    return &result_.too_much_kept;
  }
  const auto larger = too_large_.find(layout.family);
  if (larger != too_large_.end() && layout.micro_batch >= larger->second) {
    return &result_.too_much_kept;
  }
  const std::vector<int64_t>& fitting = fitting_[layout.family];
  const auto above = std::ranges::count_if(
      fitting, [&](int64_t micro_batch) { return micro_batch > layout.micro_batch; });
  if (above >= enough) {
    return &result_.passed_over;
  }
  if (is_too_slow(layout)) {
    return &result_.too_slow;
  }
  return has_time_ ? nullptr : &result_.left;
}

/// One of each family at a time: whether it fits decides about the others.
std::vector<size_t> PlanSearch::choose() {
  std::vector<size_t> chosen;
  std::vector<size_t> later;
  std::map<int64_t, bool> is_chosen;
  size_t at = next_;
  for (; at < order_.size() && chosen.size() < options_.at_once; ++at) {
    const Layout& layout = layouts_[order_[at]];
    if (is_chosen[layout.family]) {
      later.push_back(order_[at]);
    } else if (int64_t* const count = count_without(layout)) {
      ++*count;
    } else {
      is_chosen[layout.family] = true;
      chosen.push_back(order_[at]);
    }
  }
  next_ = at - later.size();
  std::ranges::copy(later, order_.begin() + static_cast<ptrdiff_t>(next_));
  return chosen;
}

void PlanSearch::take(const Layout& layout, SweepRow row) {
  if (row.verdict == "out_of_memory") {
    ++result_.out_of_memory;
    const auto [known, is_new] = too_large_.try_emplace(layout.family, layout.micro_batch);
    known->second = std::min(known->second, layout.micro_batch);
  } else if (value_in(row, "throughput").is_number()) {
    fitting_[layout.family].push_back(layout.micro_batch);
    const double speed = speed_of(row);
    speeds_.insert(std::ranges::upper_bound(speeds_, speed, std::greater<>()), speed);
    result_.best.push_back({layout, std::move(row)});
  } else {
    ++result_.failed;
    const bool is_new = std::ranges::none_of(result_.refused, [&](const TriedLayout& known) {
      return known.row.message == row.message;
    });
    if (is_new) {
      result_.refused.push_back({layout, std::move(row)});
    }
  }
}

PlanResult PlanSearch::run(const RunWave& run_wave) {
  for (std::vector<size_t> chosen = choose(); !chosen.empty(); chosen = choose()) {
    std::vector<std::optional<SweepRow>> rows = run_wave(chosen);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i]) {
        take(layouts_[chosen[i]], std::move(*rows[i]));
      } else {
        ++result_.left;
        has_time_ = false;
      }
    }
  }
  std::ranges::stable_sort(result_.best, std::greater<>(), speed_of_tried);
  return std::move(result_);
}

}  // namespace

PlanResult search_plan(const LayoutTask& task, const std::vector<Layout>& layouts,
                       const SearchOptions& options, const RunWave& run_wave) {
  return PlanSearch(task, layouts, options).run(run_wave);
}

}  // namespace lockstep::cli
