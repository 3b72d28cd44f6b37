#include "model/trainer/prepare/rank_differences.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
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

bool strikes_all(const FaultSpec& fault) {
  return !fault.rank && (!fault.ranks || fault.ranks->value.kind == RankSelection::Kind::all);
}

std::vector<int64_t> ranks_named(const FaultSpec& fault) {
  return fault.rank ? std::vector<int64_t>{fault.rank->value} : fault.ranks->value.ranks;
}

// Whether there is such a node is checked elsewhere.
std::vector<int64_t> ranks_of_node(int64_t node, int32_t ranks_per_node) {
  if (node < 0 || node > std::numeric_limits<int32_t>::max()) {
    return {};
  }
  std::vector<int64_t> ranks(static_cast<size_t>(ranks_per_node));
  std::iota(ranks.begin(), ranks.end(), node * ranks_per_node);
  return ranks;
}

}  // namespace

std::optional<Value> PlaceNames::lookup(std::string_view name) {
  return name_of_rank(name, place_);
}

void RankDifferences::add(const Expression& expression) {
  if (expression.uses_random() || expression.uses_unknown()) {
    known_ = false;
  } else if (!names_place(expression)) {
    return;
  } else if (depends_on_place_alone(expression)) {
    expressions_.push_back(expression);
  } else {
    for (const ExpressionNodePointer& part : expression.root().parts) {
      add_parts_of_place(part);
    }
  }
}

void RankDifferences::add_parts_of_place(const ExpressionNodePointer& node) {
  const Expression part(node, "");
  if (!names_place(part)) {
    return;
  }
  if (depends_on_place_alone(part)) {
    expressions_.push_back(part);
    return;
  }
  for (const ExpressionNodePointer& each : node->parts) {
    add_parts_of_place(each);
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
      alone_.insert(root.integer());
    }
  } catch (const EvaluationError&) {
    known_ = false;
  }
}

void RankDifferences::add_fault(const FaultSpec& fault, uint32_t number, int32_t ranks_per_node) {
  if (fault.kind == FaultKind::slow_link) {
    add_slow_link(fault, ranks_per_node);
    return;
  }
  std::vector<int64_t> struck;
  if (fault.kind == FaultKind::lost_node) {
    struck = ranks_of_node(value_or(fault.node, int64_t{0}), ranks_per_node);
  } else if (!strikes_all(fault)) {
    struck = ranks_named(fault);
  }
  if (fault.kind == FaultKind::signal && ranks_per_node > 0) {  // its launcher may pass it on
    std::set<int64_t> nodes;
    for (const int64_t rank : struck) {
      nodes.insert(rank / ranks_per_node);
    }
    for (const int64_t node : nodes) {
      const std::vector<int64_t> others = ranks_of_node(node, ranks_per_node);
      alone_.insert(others.begin(), others.end());
    }
  }
  for (const int64_t rank : struck) {
    faults_[rank].push_back(number);
  }
}

// Its ends may be of one node, whose ranks are then not alike.
void RankDifferences::add_slow_link(const FaultSpec& fault, int32_t ranks_per_node) {
  for (const Placed<LinkEnd>& end : fault.between) {
    if (end.value.kind != LinkEnd::Kind::node) {
      known_ = false;  // how many GPUs a node has is said elsewhere
      return;
    }
    for (const int64_t rank : ranks_of_node(end.value.number, ranks_per_node)) {
      alone_.insert(rank);
    }
  }
}

std::vector<uint32_t> RankDifferences::faults_of(int64_t rank) const {
  const auto known = faults_.find(rank);
  return known == faults_.end() ? std::vector<uint32_t>() : known->second;
}

}  // namespace lockstep
