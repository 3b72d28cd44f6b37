#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "model/core/place.hpp"
#include "model/expression/evaluate.hpp"
#include "model/scenario/fault_spec.hpp"
#include "model/scenario/placed.hpp"

namespace lockstep {

/// The names of a rank's place, and no others.
class PlaceNames final : public Environment {
 public:
  explicit PlaceNames(const Place& place = {}) : place_(place) {}
  std::optional<Value> lookup(std::string_view name) override;
  double random(const SourcePlace&) override { return 0; }
  bool unknown(const SourcePlace&) override { return false; }

 private:
  Place place_;
};

/// What ranks may differ by, as far as the scenario says.
class RankDifferences {
 public:
  void add(const Expression& expression);
  void add(const std::optional<Expression>& expression);
  /// The rank that a call names: it may need what the others do not.
  void add_root(const Given<Expression>& rank);
  /// A rank that a fault strikes is another than those that it does not. `number`: of the fault.
  /// `ranks_per_node`: 0 where all are on one node.
  void add_fault(const FaultSpec& fault, uint32_t number, int32_t ranks_per_node);

  /// True until something was added that is not known before the run.
  bool known() const { return known_; }
  /// Of place alone: ranks for which all of them have the same values decide the same.
  const std::vector<Expression>& expressions() const { return expressions_; }
  /// Ranks that are like no other: those that calls name, and those on nodes with slow links.
  const std::set<int64_t>& alone() const { return alone_; }
  /// Those that strike this rank, but for those that strike all.
  std::vector<uint32_t> faults_of(int64_t rank) const;

 private:
  /// Ranks on which the parts that depend on place alone have the same values decide the same,
  /// whatever the other parts are.
  void add_parts_of_place(const ExpressionNodePointer& node);
  void add_slow_link(const FaultSpec& fault, int32_t ranks_per_node);

  bool known_ = true;
  std::vector<Expression> expressions_;
  std::set<int64_t> alone_;
  std::map<int64_t, std::vector<uint32_t>> faults_;  ///< by rank, in the order of the scenario
};

}  // namespace lockstep
