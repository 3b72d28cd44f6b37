#pragma once

#include <map>
#include <string>

#include "model/expression/differentiate.hpp"
#include "model/user_program/statement_context.hpp"
#include "model/user_program/stream_order.hpp"

namespace lockstep {

/// The way back from a value to the results of forwards, through what GradientTape has recorded,
/// with the communication of gradients that goes with it.
class BackwardWalk {
 public:
  /// All outlive the walk.
  BackwardWalk(const StatementContext& context, TensorStore& tensors, StreamOrder& streams);

  /// The gradient of `variable` with respect to the results of forwards. Raises where PyTorch
  /// would.
  Task<BackwardStart> gradient_of(GradientPointer variable, ForwardResults results, SiteId site);

 private:
  void check_node(const GradientNode& node, const ForwardResults& results, SiteId site);
  std::map<std::string, Adjoint> expression_back(const GradientNode& node, const Adjoint& adjoint);
  Task<Adjoint> gathered_back(const GradientNode& node, const Adjoint& adjoint);
  Task<Adjoint> scattered_back(const GradientNode& node, TensorPointer whole);

  Rank& rank_;
  const ProgramSettings& settings_;
  RankLog& log_;
  TensorStore& tensors_;
  StreamOrder& streams_;
};

}  // namespace lockstep
