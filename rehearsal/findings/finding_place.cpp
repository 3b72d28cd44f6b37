#include "rehearsal/findings/finding_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/user_program/sites.hpp"
#include "properties/diagnosis/remedy.hpp"
#include "rehearsal/findings/finding_cause.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

// What stands nowhere in the scenario is the trainer's, or the model's.
SiteId place_of_last_resort(const OneRun& run, const Finding& finding) {
  for (const RankAction& action : finding.did) {
    if (has_line(run, action.site)) {
      return action.site;
    }
  }
  const Scenario& scenario = *run.preparation.scenario;
  const TrainerSpec* const trainer = scenario.trainer ? &*scenario.trainer : nullptr;
  return first_written({trainer != nullptr ? place_of_key(trainer->strategy) : nullptr,
                        trainer != nullptr ? &trainer->place : nullptr,
                        scenario.cluster ? &scenario.cluster->place : nullptr});
}

}  // namespace

void place_findings(const OneRun& run, std::vector<Finding>& findings) {
  if (run.result.journal == nullptr) {
    return;
  }
  for (Finding& finding : findings) {
    if (finding.place != no_site) {
      continue;
    }
    const std::optional<FindingCause> cause = cause_of(run, finding);
    if (cause && has_line(run, cause->site)) {
      finding.place = cause->site;
      if (cause->leaves && finding.code != "LS109") {
        finding.fix = remedy_for_return(*cause->leaves);
      }
      if (!cause->difference.empty()) {
        finding.why.text += (finding.why.text.empty() ? "" : ": ") + cause->difference;
        finding.fix = {cause->equal};
      }
      if (!cause->branch.empty() && finding.code == "LS305") {
        RemedyContext context;
        context.condition = cause->branch;
        context.steps_if_true = cause->steps_if_true;
        finding.fix = remedy_for(finding.code, context);
      }
      const bool known = std::ranges::any_of(
          finding.sites, [&](const FindingSite& site) { return site.site == cause->site; });
      if (!known) {
        finding.sites.push_back({cause->site, SiteRole::cause, cause->label});
      } else if (!cause->branch.empty()) {
        finding.why.text += fmt::format(", by the branch on `{}`", cause->branch);
      }
      continue;
    }
    for (const FindingSite& site : finding.sites) {
      finding.place =
          finding.place == no_site && has_line(run, site.site) ? site.site : finding.place;
    }
    if (finding.place == no_site) {
      finding.place =
          has_line(run, finding.why.site) ? finding.why.site : place_of_last_resort(run, finding);
    }
  }
}

SiteId place_of_samples(const OneRun& run, std::string_view stage) {
  const Scenario& scenario = *run.preparation.scenario;
  const LoaderSpec* const loader = loader_of(run, stage);
  if (loader == nullptr) {
    return no_site;
  }
  const TrainerSpec* const trainer = scenario.trainer ? &*scenario.trainer : nullptr;
  return first_written(
      {place_of_key(loader->sampler_drop_last), place_of_key(loader->sampler),
       place_of_key(loader->iterable),
       trainer != nullptr ? place_of_key(trainer->use_distributed_sampler) : nullptr,
       trainer != nullptr ? place_of_key(trainer->replace_sampler_ddp) : nullptr,
       place_of_key(loader->samples), &loader->place,
       scenario.data ? &scenario.data->place : nullptr,
       trainer != nullptr ? &trainer->place : nullptr});
}

SiteId place_of_order(const OneRun& run) {
  const LoaderSpec* const loader = loader_of(run, "train");
  return loader == nullptr ? no_site
                           : first_written({place_of_key(loader->set_epoch),
                                            place_of_key(loader->sampler), &loader->place});
}

}  // namespace lockstep::cli
