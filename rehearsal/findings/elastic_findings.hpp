#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/elastic/elastic_results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Removes from the findings of an attempt what the launcher has answered by a restart: the failure
/// itself, and that others wait for the rank that is gone.
void drop_answered_failures(std::vector<Finding>& findings);
/// Says in the findings about a failure why the launcher made no other attempt.
void tell_end_of_job(const ElasticResults& results, std::vector<Finding>& findings);
/// What restarts have made of a training: `last` is the last attempt. LS502 where it began anew,
/// LS304 where it was resumed within an epoch, LS309 where the rate does not fit the new batch.
std::vector<Finding> elastic_findings(const OneRun& last, const ElasticResults& results);

}  // namespace lockstep::cli
