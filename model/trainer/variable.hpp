#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "model/scenario/value.hpp"
#include "model/trainer/device_tensor.hpp"

namespace lockstep {

/// A process group as this rank knows it, also where it is no member.
struct Group {
  GroupId id{};
  std::vector<int32_t> members;  ///< global ranks in group order; empty: the whole world
};

/// What a name of a program is bound to. Tensors are shared, as Python's names share objects.
struct Variable {
  using List = std::vector<Variable>;
  std::variant<Value, TensorPointer, std::shared_ptr<PendingWork>, Group, List> content;
};

/// Names bound by `as` and `let` in one execution of a hook, or on the module.
using Frame = std::map<std::string, Variable, std::less<>>;

}  // namespace lockstep
