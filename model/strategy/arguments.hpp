#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace lockstep {

/// What is wrong with one argument, which has the name that it has in StrategyArguments; empty:
/// with the strategy as a whole.
class ArgumentProblem : public std::invalid_argument {
 public:
  enum class Part : uint8_t { value, name };

  explicit ArgumentProblem(const std::string& message, std::string argument = "",
                           std::string remedy = "", Part part = Part::value)
      : std::invalid_argument(message),
        argument_(std::move(argument)),
        remedy_(std::move(remedy)),
        part_(part) {}
  const std::string& argument() const { return argument_; }
  const std::string& remedy() const { return remedy_; }
  /// What is wrong of the argument: its name, where it should not be there.
  Part part() const { return part_; }

 private:
  std::string argument_;
  std::string remedy_;
  Part part_ = Part::value;
};

/// An argument that the framework takes and that is not modelled here.
class UnmodelledArgument final : public ArgumentProblem {
 public:
  using ArgumentProblem::ArgumentProblem;
};

/// What the framework refuses when the strategy is set up.
class RefusedArgument final : public ArgumentProblem {
 public:
  using ArgumentProblem::ArgumentProblem;
};

/// The arguments that a scenario gives a strategy, by name. What a map holds has the name of the
/// map before its own: "mixed_precision.param_dtype".
class StrategyArguments {
 public:
  using Value =
      std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<std::string>>;

  void set(const std::string& name, Value value) { values_[name] = std::move(value); }
  /// Absent and `null` are both "no": is_none() tells them apart.
  bool has(const std::string& name) const {
    const Value* value = find(name);
    return value != nullptr && !std::holds_alternative<std::monostate>(*value);
  }
  bool is_none(const std::string& name) const {
    const Value* value = find(name);
    return value != nullptr && std::holds_alternative<std::monostate>(*value);
  }
  /// Null where it is absent.
  const Value* find(const std::string& name) const;
  const std::map<std::string, Value>& all() const { return values_; }
  /// Whether it was there.
  bool erase(const std::string& name) { return values_.erase(name) != 0; }

  /// The value, or the default where it is absent. Throws ArgumentProblem that names the argument
  /// and the type it wants.
  bool boolean(const std::string& name, bool otherwise) const;
  int64_t integer(const std::string& name, int64_t otherwise) const;
  double number(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  /// A list of texts; one text counts as a list of it.
  std::vector<std::string> texts(const std::string& name) const;

  /// From now on the names that are asked for are added to these, which outlive the arguments and
  /// all copies of them. For one thread.
  void note_reads(std::set<std::string>* names) { reads_ = names; }

 private:
  std::map<std::string, Value> values_;
  std::set<std::string>* reads_ = nullptr;
};

}  // namespace lockstep
