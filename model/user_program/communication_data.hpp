#pragma once

#include <map>
#include <string>

#include "model/user_program/statement_parts.hpp"

namespace lockstep {

/// The data of one communication, under the name that they have.
struct NamedTensor {
  TensorPointer tensor;
  std::string name;            ///< of a bare name, else empty
  GradientPointer gradient{};  ///< that flows through it
};

/// Finds or makes the data that communication statements of one rank give.
class CommunicationData {
 public:
  explicit CommunicationData(const StatementParts& parts);

  Task<NamedTensor> of(const Statement& statement, Frame& frame);
  /// One entry of a list that is communicated entry by entry.
  Task<NamedTensor> of_part(const Variable& part, SiteId site);
  /// Of a statement that gives only a size.
  Task<TensorPointer> sized(const Statement& statement, Frame& frame);

 private:
  RankLog& log_;
  TensorStore& tensors_;
  ModuleNames& names_;
  Locations& locations_;
  ExpressionValues& expressions_;
  std::map<const Statement*, TensorPointer> sized_;  ///< looked up only, never walked
};

}  // namespace lockstep
