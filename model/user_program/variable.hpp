#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "model/expression/value.hpp"
#include "model/user_program/device_tensor.hpp"
#include "model/user_program/gradient_node.hpp"

namespace lockstep {

/// The binding of a name of a program. Tensors are shared, as Python's names share objects.
struct Variable {
  using List = std::vector<Variable>;
  std::variant<Value, TensorPointer, std::shared_ptr<PendingWork>, Group, List> content;
  GradientPointer gradient{};  ///< null: no gradient flows through it
};

/// Names bound by `as` and `let` in one execution of a hook, or on the module.
using Frame = std::map<std::string, Variable, std::less<>>;

}  // namespace lockstep
