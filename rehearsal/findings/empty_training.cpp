#include "rehearsal/findings/empty_training.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/user_program/sites.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

std::vector<Finding> empty_training(const OneRun& run) {
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  const LoaderSpec* const loader = loader_of(run, "train");
  if (loader == nullptr || !std::ranges::all_of(ranks, [](const RankLog& rank) {
        return rank.found_no_batches || !rank.runs_trainer;
      })) {
    return {};
  }
  Finding finding = finding_of("", Level::warning, "nothing is trained: no rank has a batch");
  if (loader->place.line > 0) {
    finding.sites.push_back({site_of(loader->place), SiteRole::subject, "gives no batch"});
  }
  if (loader->drop_last && loader->drop_last->value && loader->samples) {
    finding.why.text = fmt::format("incomplete batches are dropped, and {} samples do not fill one",
                                   loader->samples->value);
  }
  finding.fix = {"give every rank a batch: more samples, a smaller batch_size, or no drop_last"};
  return {std::move(finding)};
}

}  // namespace lockstep::cli
