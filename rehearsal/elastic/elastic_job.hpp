#pragma once

#include "rehearsal/elastic/attempts.hpp"
#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

/// Explores a scenario; of one whose launcher starts ranks again, all attempts. Its last attempt is
/// then that of the rehearsal.
Explored explore_job(const RehearseRequest& request, Rehearsal& rehearsal);

/// Predicts the times of all attempts, where those that were explored computed values: gives the
/// last attempt; nothing where it does not come as far.
std::optional<OneRun> price_job(const RunRequest& how, Rehearsal& rehearsal);

/// Runs all attempts of a job once more, for what is to be read off each of them. Nothing where one
/// was not run to its end or failure.
std::vector<OneRun> runs_of_job(const RunRequest& how, const Scenario& scenario);

/// Gives the results of a job what its attempts took, and what `cluster.mtbf` expects of it;
/// `priced`: the run that times are predicted by.
void complete_job(const OneRun& priced, Rehearsal& rehearsal);

}  // namespace lockstep::cli
