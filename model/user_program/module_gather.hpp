#pragma once

#include "model/user_program/communication_data.hpp"

namespace lockstep {

/// What a module's all_gather does where its strategy makes no process group of torch.distributed.
class ModuleGather {
 public:
  /// `data` outlive the gather, as all of the parts do.
  ModuleGather(const StatementParts& parts, CommunicationData& data);

  /// Of a module, whose all_gather then depends on the strategy.
  bool lacks_process_group() const {
    return trainer_ != nullptr && (settings_.gathers_rows || !trainer_->has_process_group());
  }
  /// Any call of torch.distributed raises there.
  void check_process_group(SiteId site) const;
  Program communicate(const Statement& statement, Frame& frame);

 private:
  Program gather_alone(const Statement& statement, Frame& frame);
  Program gather_rows(const Statement& statement, Frame& frame);
  Task<Variable> joined_rows(const NamedTensor& data, SiteId site);

  const Rank& rank_;
  const ProgramSettings& settings_;
  TrainerScope* trainer_;
  TensorStore& tensors_;
  StreamOrder& streams_;
  ModuleNames& names_;
  TensorChecks& checks_;
  Locations& locations_;
  GradientTape& tape_;
  ExpressionValues& expressions_;
  CommunicationData& data_;
};

}  // namespace lockstep
