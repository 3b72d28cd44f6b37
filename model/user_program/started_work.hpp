#pragma once

#include <memory>
#include <vector>

#include "model/scenario/statement.hpp"
#include "model/user_program/device_tensor.hpp"
#include "model/user_program/statement_context.hpp"

namespace lockstep {

/// The async communication that statements of one rank have started, until it is known to be waited
/// for.
class StartedWork {
 public:
  /// All outlive the list.
  StartedWork(const StatementContext& context, const TensorStore& tensors);

  std::shared_ptr<PendingWork> start(const Statement& statement, Ticket ticket, StreamId on);
  /// LS403 for what was never waited for. To be called where the program ends.
  void tell_unwaited();

 private:
  const ProgramSettings& settings_;
  RankLog& log_;
  const TensorStore& tensors_;
  std::vector<std::shared_ptr<PendingWork>> works_;
  size_t works_to_sort_ = 1024;  ///< so many, then those waited for go
};

}  // namespace lockstep
