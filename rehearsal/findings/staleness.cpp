#include "rehearsal/findings/staleness.hpp"

#include <fmt/format.h>

#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

std::optional<Staleness> staleness_of(const OneRun& run) {
  std::optional<Staleness> all;
  if (run.preparation.log == nullptr) {
    return all;
  }
  for (const RankLog& rank : run.preparation.log->ranks) {
    if (rank.staleness) {
      all = all.value_or(Staleness{});
      all->merge(*rank.staleness);
    }
  }
  return all;
}

std::string staleness_text(const OneRun& run) {
  const std::optional<Staleness> staleness = staleness_of(run);
  if (!staleness) {
    return "";
  }
  if (!run.preparation.pipeline_ranks.empty()) {
    return fmt::format(
        "staleness: stages computed gradients by weights that are {:.3g} updates old on average, "
        "at most {}\n",
        staleness->mean(), staleness->most);
  }
  std::string text = fmt::format(
      "staleness: between a worker's pull and its push the server made {:.3g} updates "
      "on average, at most {} ({})",
      staleness->mean(), staleness->most, plural(staleness->pushes, "gradient"));
  if (staleness->dropped > 0) {
    text += fmt::format("; {} came too late and {} dropped", staleness->dropped,
                        staleness->dropped == 1 ? "was" : "were");
  }
  return text + "\n";
}

}  // namespace lockstep::cli
