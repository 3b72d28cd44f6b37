#pragma once

#include <string>
#include <vector>

#include "cli/render/json.hpp"

namespace lockstep::cli {

/// An object for every group of ranks for which the same is reported, with `ranks` in front; in the
/// order of their first ranks.
Json told_together(const std::vector<Json>& by_rank);
/// A finite number, else null: JSON knows no infinity and no NaN.
Json number(double value);
/// State of the scenario's checkpoints on each rank.
Json checkpoints_json(const ByRank<RankLog>& ranks);
/// By rank, a list for each optimizer.
Json learning_rates_json(const ByRank<RankLog>& ranks);
/// Values in loggers and progress bars, with ranks that agree grouped together.
/// Only rank 0's loggers write, and only its progress bar is shown. `logged`: losses that are not
/// computed have keys without values.
Json loggers_json(const ByRank<RankLog>& ranks, const std::vector<GlobalMetric>& logged);
/// Null for a loss that is not computed.
Json value_json(const std::vector<GlobalMetric>& logged, const std::string& key, double value);
/// Keys of the last epoch: what each rank logs, what one device logs, and what speaks between them.
Json logged_json(const std::vector<GlobalMetric>& logged);
/// How far the weights of ranks are apart by design, and what compression changed; null: neither.
Json weights_json(const OneRun& run);

}  // namespace lockstep::cli
