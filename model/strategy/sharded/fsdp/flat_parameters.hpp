#pragma once

#include "model/strategy/layout/wrap_policy.hpp"

namespace lockstep {

/// What decides how the framework says that it cannot flatten a module.
struct FlatParameterRules {
  bool is_older = false;       ///< torch up to 2.0: also where optimizers see original parameters
  bool names_modules = false;  ///< the policy is an object that torch asks for all modules at once
};

/// Throws RefusedArgument for a unit with one flat parameter of which only a part is trained.
void refuse_partly_frozen(const Network& network, const WrapPolicy& policy,
                          const FlatParameterRules& rules);

}  // namespace lockstep
