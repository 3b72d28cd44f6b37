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
  /// A rank that a fault slows down is another than those that it does not. `number`: of the fault.
  void add_fault(const FaultSpec& fault, uint32_t number);

  /// True until something was added that is not known before the run.
  bool known() const { return known_; }
  const std::vector<Expression>& expressions() const { return expressions_; }
  const std::set<int64_t>& roots() const { return roots_; }
  /// Those that slow this rank, but for those that slow all.
  std::vector<uint32_t> faults_of(int64_t rank) const;

 private:
  bool known_ = true;
  std::vector<Expression> expressions_;
  std::set<int64_t> roots_;
  std::map<int64_t, std::vector<uint32_t>> faults_;  ///< by rank, in the order of the scenario
};

}  // namespace lockstep
