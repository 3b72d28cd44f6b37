#pragma once

#include "model/network/optimizer/adadelta.hpp"
#include "model/network/optimizer/adafactor.hpp"
#include "model/network/optimizer/adagrad.hpp"
#include "model/network/optimizer/adam.hpp"
#include "model/network/optimizer/adamax.hpp"
#include "model/network/optimizer/asgd.hpp"
#include "model/network/optimizer/lamb.hpp"
#include "model/network/optimizer/lion.hpp"
#include "model/network/optimizer/nadam.hpp"
#include "model/network/optimizer/radam.hpp"
#include "model/network/optimizer/rmsprop.hpp"
#include "model/network/optimizer/rprop.hpp"
#include "model/network/optimizer/sgd.hpp"

namespace lockstep {

/// Classes in a list.
template <class... Optimizers>
struct OptimizerClasses {};

/// Those whose arithmetic is a kernel of their own, and those that share optimizer_step.
using OptimizersWithKernels = OptimizerClasses<Sgd, Adam, AdamW, QAdam>;
using OptimizersOfOneKernel = OptimizerClasses<Adagrad, Adadelta, Adamax, NAdam, RAdam, RMSprop,
                                               Rprop, Asgd, Lion, Lamb, Adafactor>;

/// Calls `visit` with the class of this kind; whether there is one in the list.
template <class Visit, class... Optimizers>
bool visit_optimizer(OptimizerClasses<Optimizers...> /*list*/, OptimizerKind kind, Visit visit) {
  return ((Optimizers::defaults().kind == kind ? (visit(Optimizers{}), true) : false) || ...);
}

}  // namespace lockstep
