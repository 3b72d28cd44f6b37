#include "rehearsal/plan/plan_search.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace lockstep::cli {

namespace {

double speed_of(const TriedLayout& tried) {
  const Value speed = value_in(tried.row, "throughput");
  return speed.is_number() ? speed.number() : 0;
}

/// Every layout's place among those of its family, from 0.
std::vector<size_t> waves_of(const std::vector<Layout>& layouts) {
  std::vector<size_t> waves(layouts.size(), 0);
  for (size_t index = 1; index < layouts.size(); ++index) {
    if (layouts[index].family == layouts[index - 1].family) {
      waves[index] = waves[index - 1] + 1;
    }
  }
  return waves;
}

void take(const Layout& layout, SweepRow row, std::map<int64_t, int>& fitting, PlanResult& result) {
  if (row.verdict == "out_of_memory") {
    ++result.out_of_memory;
  } else if (value_in(row, "throughput").is_number()) {
    ++fitting[layout.family];
    result.best.push_back({layout, std::move(row)});
  } else {
    ++result.failed;
    const bool is_new = std::ranges::none_of(
        result.refused, [&](const TriedLayout& known) { return known.row.message == row.message; });
    if (is_new) {
      result.refused.push_back({layout, std::move(row)});
    }
  }
}

}  // namespace

PlanResult search_plan(const LayoutTask& task, const std::vector<Layout>& layouts,
                       const RunWave& run_wave) {
  PlanResult result;
  result.layouts = std::ssize(layouts);
  const std::vector<size_t> waves = waves_of(layouts);
  const size_t count = layouts.empty() ? 0 : *std::max_element(waves.begin(), waves.end()) + 1;
  constexpr int enough = 2;
  std::map<int64_t, int> fitting;  ///< by family
  bool has_time = true;
  for (size_t wave = 0; wave < count; ++wave) {
    std::vector<size_t> chosen;
    for (size_t index = 0; index < layouts.size(); ++index) {
      const Layout& layout = layouts[index];
      if (waves[index] != wave) {
        continue;
      }
      if (task.device_memory > Bytes{} && layout.model_states > task.device_memory) {
        ++result.too_large;
      } else if (fitting[layout.family] >= enough) {
        ++result.passed_over;
      } else if (has_time) {
        chosen.push_back(index);
      } else {
        ++result.left;
      }
    }
    std::vector<std::optional<SweepRow>> rows =
        chosen.empty() ? std::vector<std::optional<SweepRow>>() : run_wave(chosen);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i]) {
        take(layouts[chosen[i]], std::move(*rows[i]), fitting, result);
      } else {
        ++result.left;
        has_time = false;
      }
    }
  }
  std::ranges::stable_sort(result.best, std::greater<>(), speed_of);
  return result;
}

}  // namespace lockstep::cli
