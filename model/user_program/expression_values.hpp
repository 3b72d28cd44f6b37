#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/user_program/gradient_tape.hpp"
#include "model/user_program/locations.hpp"
#include "model/user_program/tensor_checks.hpp"

namespace lockstep {

/// The values that expressions of statements have on one rank: waits for and reads the tensors that
/// an expression computes with, and makes the tensors that it gives. An error is a finding at the
/// statement and ends this rank's program by ProgramException.
class ExpressionValues {
 public:
  using NamedValues = GradientTape::NamedValues;

  /// What tensors are made, ordered and looked at with. All outlive the values.
  struct Device {
    TensorStore& tensors;
    StreamOrder& streams;
    TensorChecks& checks;
    Locations& locations;
  };
  ExpressionValues(const StatementContext& context, ModuleNames& names, GradientTape& tape,
                   const Device& device);

  Task<Value> value_of(const Expression& expression, Frame& frame, SiteId site);
  Task<bool> condition_of(const Expression& expression, Frame& frame, SiteId site);
  /// A number, or a tensor of one; `what` names it in an error.
  Task<double> number_of(const Expression& expression, Frame& frame, SiteId site,
                         std::string_view what);
  Task<int64_t> integer_of(const Expression& expression, Frame& frame, SiteId site,
                           std::string_view what);
  /// What the rank at `place` would compute, where all other names are the same on both.
  int64_t integer_at(const Place& place, const Expression& expression, Frame& frame, SiteId site,
                     std::string_view what);
  /// The tensor that a bare name names, or a new one with the expression's value.
  Task<TensorPointer> tensor_value(const Expression& expression, Frame& frame, SiteId site);
  /// What a name can be bound to. A bare name keeps naming the same tensor; a list written out
  /// holds what its names name.
  Task<Variable> variable_of(const Expression& expression, Frame& frame, SiteId site);
  /// The value of what a name is bound to; `name` is for errors.
  Task<Value> read(const Variable& variable, const std::string& name, SiteId site);
  /// In device memory, by default the rank's own.
  TensorPointer tensor_from(const Value& value, Location location = {});

 private:
  friend class RankScope;
  Task<Value> read_tensor(TensorPointer tensor, const std::string& name, SiteId site);
  Program resolve(const Expression& expression, Frame& frame, SiteId site, NamedValues& values);
  Value evaluated(const Expression& expression, Frame& frame, SiteId site,
                  const NamedValues& resolved);
  NamedValues values_of_names(const Expression& expression, Frame& frame, SiteId site,
                              const NamedValues& resolved);

  Rank& rank_;
  const ProgramSettings& settings_;
  RankLog& log_;
  TrainerScope* trainer_;
  ModuleNames& names_;
  GradientTape& tape_;
  TensorStore& tensors_;
  StreamOrder& streams_;
  TensorChecks& checks_;
  Locations& locations_;
  std::map<SiteId, uint64_t> random_turns_;
};

}  // namespace lockstep
