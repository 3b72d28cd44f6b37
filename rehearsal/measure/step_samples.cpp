#include "rehearsal/measure/step_samples.hpp"

#include <algorithm>

namespace lockstep::cli {

std::vector<int64_t> samples_of_own_steps(const RankLog& log) {
  std::vector<int64_t> samples = log.samples_of_steps;
  std::erase(samples, RankLog::mirrored_step);
  return samples;
}

std::vector<int64_t> samples_of_steps(const RunLog& log, size_t steps) {
  const std::vector<int64_t>& first = log.ranks.front().samples_of_steps;
  const auto is_mirrored = [&first](size_t step) {
    return step < first.size() && first[step] == RankLog::mirrored_step;
  };
  std::vector<int64_t> samples(steps, 0);
  int64_t total = 0;
  for (size_t place = 0; place < log.ranks.distinct().size(); ++place) {
    const RankLog& rank = log.ranks.distinct()[place];
    const auto ranks = static_cast<int64_t>(log.ranks.ranks_of(place));
    size_t taken = 0;  // by rank 0
    for (size_t step = 0; step < rank.samples_of_steps.size(); ++step) {
      const int64_t own = std::max<int64_t>(0, rank.samples_of_steps[step]) * ranks;
      total += own;
      if (!is_mirrored(step) && taken++ < steps) {
        samples[taken - 1] += own;
      }
    }
  }
  if (total == 0 || steps == 0) {
    return {};
  }
  const size_t counted = samples_of_own_steps(log.ranks.front()).size();
  const bool is_last_under_way = counted + 1 == steps;
  if (counted != steps && !is_last_under_way) {
    samples.assign(steps, total / static_cast<int64_t>(steps));
  }
  return samples;
}

}  // namespace lockstep::cli
