#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/program/run.hpp"
#include "properties/diagnosis/operation_table.hpp"
#include "properties/diagnosis/wait_graph.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// Findings of one hung (or replayed) run, which outlives this with its table and graph.
class WaitFindings {
 public:
  WaitFindings(const RunResult& run, const OperationTable& table, const WaitGraph& graph)
      : run_(run), table_(table), graph_(graph) {}

  /// Operations that wait for each other.
  Finding circle(const WaitKnot& knot, const std::string& code, Level level) const;
  /// Something that these nodes wait for never comes from `ranks`, for this reason.
  Finding missing(const RankSet& ranks, const std::vector<uint32_t>& waiters,
                  const std::string& reason) const;
  /// Of these nodes, in the table.
  std::vector<size_t> communications(const std::vector<uint32_t>& nodes) const;

 private:
  void fill(Finding& finding, const std::vector<size_t>& operations) const;
  std::string chain(const std::vector<uint32_t>& cycle) const;

  const RunResult& run_;
  const OperationTable& table_;
  const WaitGraph& graph_;
};

}  // namespace lockstep
