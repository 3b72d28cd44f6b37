#pragma once

#include <vector>

#include "model/strategy/layout/shard_layout.hpp"
#include "model/strategy/layout/wrap_policy.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// A module with the parameters that are its own, as indices into Replica::parameters().
struct UnitModule {
  WrappedModule module;
  std::vector<size_t> parameters;
  bool is_root = false;
};

/// The modules of a policy within `root`, and this one before them: a parameter belongs to the
/// innermost module that holds its layer. What is partly in the root counts with that part. None
/// without parameters: there is nothing to gather.
std::vector<UnitModule> unit_modules(const Replica& replica, const WrapPolicy& wrap,
                                     const WrappedModule& root);

/// The parameters by their first dimension.
std::vector<ShardLayout::Rows> rows_of(const Replica& replica,
                                       const std::vector<size_t>& parameters);

}  // namespace lockstep
