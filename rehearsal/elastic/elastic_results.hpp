#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rehearsal/elastic/failure_forecast.hpp"
#include "rehearsal/elastic/launcher_rule.hpp"

namespace lockstep::cli {

/// One start of all ranks by an elastic launcher.
struct AttemptResult {
  int32_t ranks = 0;
  std::vector<int32_t> nodes;  ///< of the cluster, by node rank
  Time began{};                ///< since the start of the job
  Time ran{};                  ///< until a rank failed, or to its end
  std::string failure;         ///< "rank 3 was lost"; empty: it came to its end
  int64_t first_step = 0;      ///< optimizer steps when it began to train
  int64_t last_step = 0;       ///< at its end
  int64_t simulated = 0;       ///< of the steps that it took; the others repeat these
  /// Optimizer steps that the next attempt does not repeat, and the time that they took here.
  int64_t kept_step = 0;
  Time useful{};
  std::string resumed_from;  ///< the file; empty: it began anew
  /// Weights are on servers, which read no file and begin anew, whatever its workers have read.
  bool servers_begin_anew = false;
  std::optional<int64_t> effective_batch_size;
  double learning_rate = 0;
  Downtime down{};  ///< until the next attempt; of the last, nothing
};

/// Samples of an epoch that was resumed within.
struct ResumedEpoch {
  int64_t epoch = 0;
  int64_t samples = 0;  ///< of the data set
  int64_t repeated = 0;
  int64_t missed = 0;
};

/// What an elastic launcher made of a job.
struct ElasticResults {
  std::vector<AttemptResult> attempts;       ///< at least one
  std::string ended_by;                      ///< why a failure was the last; empty: none was
  std::vector<ResumedEpoch> resumed_epochs;  ///< in their order
  std::optional<FailureForecast> forecast;   ///< with `cluster.mtbf`

  int64_t restarts() const { return static_cast<int64_t>(attempts.size()) - 1; }
  Time wall() const { return attempts.back().began + attempts.back().ran; }
  Time useful() const {
    Time all{};
    for (const AttemptResult& attempt : attempts) {
      all += attempt.useful;
    }
    return all;
  }
};

}  // namespace lockstep::cli
