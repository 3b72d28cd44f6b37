#pragma once

#include <stdexcept>
#include <string>

#include "model/expression/source.hpp"

namespace lockstep {

/// An operation on values that has no result (wrong type, division by zero, ...). Thrown by what
/// knows values but not the file; the evaluator turns it into an EvaluationError with a place.
class OperationError : public std::runtime_error {
 public:
  explicit OperationError(const std::string& message, std::string remedy = "")
      : std::runtime_error(message), remedy_(std::move(remedy)) {}
  const std::string& remedy() const { return remedy_; }

 private:
  std::string remedy_;
};

/// An expression that has no value, with the place of the offending part in the scenario file.
/// what() is the message alone.
class EvaluationError : public std::runtime_error {
 public:
  EvaluationError(SourcePlace place, const std::string& message, std::string remedy)
      : std::runtime_error(message), place_(std::move(place)), remedy_(std::move(remedy)) {}
  const SourcePlace& place() const { return place_; }
  std::string message() const { return what(); }
  /// The remedy; empty if the message already says it.
  const std::string& remedy() const { return remedy_; }

 private:
  SourcePlace place_;
  std::string remedy_;
};

/// The expression uses a name that is not defined.
class UnboundNameError : public EvaluationError {
 public:
  using EvaluationError::EvaluationError;
};

}  // namespace lockstep
