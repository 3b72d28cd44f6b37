#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/core/op.hpp"
#include "model/core/units.hpp"
#include "rehearsal/case_source.hpp"
#include "sim/cost/collective_price.hpp"

namespace lockstep::cli {

/// The question of `lockstep collective`.
struct CollectiveQuestion {
  OpKind kind = OpKind::all_reduce;
  /// A scenario FILE[:CASE], whose cluster, env and versions count; a preset; or `{preset: ..}`.
  std::string cluster;
  std::optional<int64_t> nodes;
  std::optional<int64_t> ranks;                ///< absent: all GPUs of all nodes, or the scenario's
  std::vector<std::string> set;                ///< as --set
  std::vector<sim::NcclVariable> environment;  ///< after those of the scenario
  int64_t gpus_per_process = 1;
  bool is_uncorrected = false;
};

/// One size: what is predicted, and what was measured where there is a measurement.
struct CollectiveRow {
  int64_t bytes = 0;  ///< of the larger side
  int64_t count = 0;  ///< fp32 elements, as nccl-tests counts them
  sim::CollectivePrice price;
  double algorithm_GBps = 0;
  double bus_GBps = 0;
  std::optional<double> measured_us;
  /// |predicted - measured| / measured.
  std::optional<double> error() const;
};

/// What a communicator is predicted to take.
struct CollectivePrediction {
  std::string system;  ///< "16 x h100-sxm5-80gb on 2 nodes of dgx-h100"
  std::string preset;
  sim::NcclVersion version{};
  std::string path;  ///< "NVLink"
  int64_t ranks = 0;
  int64_t nodes = 0;
  std::vector<std::string> extrapolations;
  std::vector<std::string> ignored;  ///< variables of NCCL that are not modelled
  std::vector<CollectiveRow> rows;
};

/// Prices of a communicator that a question describes, or what is wrong with the question.
struct AskedCollective {
  std::optional<sim::NcclPricing> pricing;
  CollectivePrediction prediction;      ///< without rows
  std::vector<Diagnostic> diagnostics;  ///< empty: the question can be answered
  Sources sources;
};
AskedCollective understand(const CollectiveQuestion& question);

/// A row for each size; sizes of measurements carry these along.
CollectiveRow predicted_row(const sim::NcclPricing& pricing, OpKind kind, int64_t bytes);

/// The middle of the errors of rows from `least_bytes` on and below `most_bytes`; nothing without
/// measurements there.
std::optional<double> median_error(const std::vector<CollectiveRow>& rows, int64_t least_bytes,
                                   int64_t most_bytes);

}  // namespace lockstep::cli
