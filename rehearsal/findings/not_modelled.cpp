#include "rehearsal/findings/not_modelled.hpp"

#include <algorithm>

namespace lockstep::cli {

std::vector<Problem> not_modelled(const OneRun& run) {
  std::vector<Problem> lacks;
  for (const RankLog& log : run.preparation.log->ranks) {
    for (const StatementFinding& finding : log.findings) {
      const bool known = std::ranges::any_of(
          lacks, [&](const Problem& lack) { return lack.message == finding.message; });
      if (finding.code == "unsupported" && !known) {
        const Site* const site = run.preparation.sites.find(finding.site);
        Problem lack{Problem::Kind::unsupported, {}, finding.message, finding.remedy, ""};
        if (site != nullptr) {
          lack.place = {site->file, site->line, site->column};
        }
        lacks.push_back(std::move(lack));
      }
    }
  }
  return lacks;
}

}  // namespace lockstep::cli
