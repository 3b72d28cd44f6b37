#include "model/trainer/prepare/rank_differences.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "model/user_program/rank_names.hpp"

namespace lockstep {

namespace {

constexpr auto names_of_places =
    std::to_array<std::string_view>({"rank", "local_rank", "node_rank", "is_global_zero"});

bool names_place(const Expression& expression) {
  return std::ranges::any_of(expression.names(), [](const std::string& name) {
    return std::ranges::find(names_of_places, name) != names_of_places.end();
  });
}

bool depends_on_place_alone(const Expression& expression) {
  PlaceNames names;
  return std::ranges::all_of(
      expression.names(), [&](const std::string& name) { return names.lookup(name).has_value(); });
}

}  // namespace

std::optional<Value> PlaceNames::lookup(std::string_view name) {
  return name_of_rank(name, place_);
}

void RankDifferences::add(const Expression& expression) {
  if (expression.uses_random() || expression.uses_unknown()) {
    known_ = false;
  } else if (names_place(expression)) {
    known_ = known_ && depends_on_place_alone(expression);
    expressions_.push_back(expression);
  }
}

void RankDifferences::add(const std::optional<Expression>& expression) {
  if (expression) {
    add(*expression);
  }
}

void RankDifferences::add_root(const Given<Expression>& rank) {
  if (!rank) {
    return;
  }
  PlaceNames names;
  try {
    const Value root = rank->value.is_constant() ? evaluate(rank->value, names) : Value();
    known_ = known_ && root.kind() == Value::Kind::integer;
    if (known_) {
      roots_.insert(root.integer());
    }
  } catch (const EvaluationError&) {
    known_ = false;
  }
}

void RankDifferences::add_fault(const FaultSpec& fault, uint32_t number) {
  if (fault.rank) {
    faults_[fault.rank->value].push_back(number);
  } else if (fault.ranks && fault.ranks->value.kind != RankSelection::Kind::all) {
    for (const int64_t rank : fault.ranks->value.ranks) {
      faults_[rank].push_back(number);
    }
  }
}

std::vector<uint32_t> RankDifferences::faults_of(int64_t rank) const {
  const auto known = faults_.find(rank);
  return known == faults_.end() ? std::vector<uint32_t>() : known->second;
}

}  // namespace lockstep
