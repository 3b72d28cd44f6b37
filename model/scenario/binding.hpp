#pragma once

#include <string>

#include "model/expression/expression.hpp"
#include "model/scenario/placed.hpp"

namespace lockstep {

/// `NAME: expression` of `let`, `append` and `log_dict`.
struct Binding {
  std::string name;  ///< may start with `self.`; a log key holds any character but white space
  Expression expression;
  SourcePlace place{};
};

}  // namespace lockstep
