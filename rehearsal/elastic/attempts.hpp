#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "rehearsal/elastic/elastic_results.hpp"
#include "rehearsal/elastic/kept_checkpoints.hpp"
#include "rehearsal/explore/explore.hpp"

namespace lockstep::cli {

/// Whether torchrun would start the ranks of this scenario more than once.
bool is_elastic(const Scenario& scenario);

/// Runs one attempt: the scenario of the attempt, and what those before it left. Its store is
/// empty.
using RunAttempt = std::function<Explored(const Scenario&, const Attempt&)>;
/// Makes the store of one attempt.
using MakeStore = std::function<std::shared_ptr<KeptCheckpoints>()>;

/// All attempts of a job.
struct Attempts {
  Explored last;                             ///< with the findings of all
  std::shared_ptr<const Scenario> scenario;  ///< of the last
  Attempt attempt;                           ///< the last
  ElasticResults results;
};
/// Runs attempts one after the other, by the launcher's rule, until one comes to its end, hangs
/// without a failure, or is the last that the launcher makes. A fault strikes once. `earlier` gets
/// the runs of all attempts but the last; null: they are dropped.
Attempts run_attempts(const Scenario& scenario, const RunAttempt& run, const MakeStore& make_store,
                      std::vector<OneRun>* earlier = nullptr);

}  // namespace lockstep::cli
