#include "rehearsal/measure/step_samples.hpp"

namespace lockstep::cli {

std::vector<int64_t> samples_of_steps(const RunLog& log, size_t steps) {
  std::vector<int64_t> samples(steps, 0);
  int64_t total = 0;
  for (size_t place = 0; place < log.ranks.distinct().size(); ++place) {
    const RankLog& rank = log.ranks.distinct()[place];
    const auto ranks = static_cast<int64_t>(log.ranks.ranks_of(place));
    for (size_t step = 0; step < rank.samples_of_steps.size(); ++step) {
      total += rank.samples_of_steps[step] * ranks;
      if (step < steps) {
        samples[step] += rank.samples_of_steps[step] * ranks;
      }
    }
  }
  if (total == 0 || steps == 0) {
    return {};
  }
  if (log.ranks.front().samples_of_steps.size() != steps) {
    samples.assign(steps, total / static_cast<int64_t>(steps));
  }
  return samples;
}

}  // namespace lockstep::cli
