#pragma once

#include <cstdint>
#include <optional>

#include "rehearsal/results.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// What all ranks that train take in a step of each. An update of the weights may be made of fewer
/// (`effective_batch_size`), where a parameter server does not wait for every worker. Nothing where
/// ranks have batches of their own.
inline std::optional<int64_t> samples_per_step(const OneRun& run, const Results& results) {
  const Preparation& preparation = run.preparation;
  if (!results.effective_batch_size) {
    return std::nullopt;
  }
  return *results.effective_batch_size * preparation.data_parallel_size /
         preparation.gradients_of_update;
}

}  // namespace lockstep::cli
