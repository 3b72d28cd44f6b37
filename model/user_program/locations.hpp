#pragma once

#include <string>

#include "model/expression/expression.hpp"
#include "model/user_program/module_names.hpp"

namespace lockstep {

/// Where the tensors of one rank live: the device on which an operation runs, and what it refuses
/// to meet there. What fails is LS310, and ends the rank.
class Locations {
 public:
  /// All outlive the locations.
  Locations(const StatementContext& context, ModuleNames& names);

  /// Tensors that are made from here on are in host memory: the module has not been moved yet.
  void make_on_host(bool on_host) { makes_on_host_ = on_host; }
  /// Where the result of an expression lies.
  Location of_result(const Expression& expression, Frame& frame);
  /// Fails where an expression computes with tensors of several devices.
  void check_same_device(const Expression& expression, Frame& frame, SiteId site);
  /// Fails where the backend of the process group cannot reach a tensor.
  void check_call(const DeviceTensor& tensor, SiteId site) const;
  /// Where `copy` may put a tensor: ProgramException for no device of the node, and a finding for
  /// that of another rank. `name` may be empty.
  void check_target(const CopyTarget& target, SiteId site, const std::string& name);
  /// Whether a GPU, as CUDA numbers it, is the rank's own.
  bool is_own(int64_t gpu) const;

 private:
  /// An operand that has a place, which not every one has: no numbers, nor tensors of one on the
  /// CPU. Null: there is none.
  struct PlacedOperand {
    Location location;
    const std::string* name = nullptr;  ///< in the expression
  };
  int64_t own_gpu() const;
  std::string name_of(const Location& location) const;
  std::string told(const Location& location) const;
  PlacedOperand place_of(const ExpressionNode& node, Frame& frame, SiteId site);
  PlacedOperand place_of_name(const std::string& name, Frame& frame);
  void check_joined(const ExpressionNode& node, Frame& frame, SiteId site);

  const Rank& rank_;
  const ProgramSettings& settings_;
  RankLog& log_;
  TrainerScope* trainer_;
  ModuleNames& names_;
  bool makes_on_host_ = false;
};

}  // namespace lockstep
