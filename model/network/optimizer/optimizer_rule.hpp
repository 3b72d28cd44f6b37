#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/core/kernel.hpp"
#include "model/core/update_sensitivity.hpp"
#include "model/network/layer.hpp"
#include "model/network/optimizer/optimizer_settings.hpp"

namespace lockstep {

/// An argument of an optimizer's constructor, and where the settings have it: one number, two, or
/// a truth value.
struct OptimizerArgument {
  std::string_view name;
  double OptimizerSettings::*number = nullptr;
  double OptimizerSettings::*second = nullptr;
  bool OptimizerSettings::*truth = nullptr;
};
using OptimizerArguments = std::span<const OptimizerArgument>;

/// What its constructor takes as its first momentum: schedulers cycle it.
enum class MomentumArgument : uint8_t { none, momentum, first_beta };

/// A tensor that it keeps for a parameter.
struct OptimizerState {
  int64_t elements = 0;
  double initial = 0;
};

/// What changes from step to step beside tensors.
struct UpdateMoment {
  int64_t step = 1;  ///< counts from 1
  /// Tensors of one element on the host: NAdam's product of mu, eta and mu of ASGD.
  std::array<double, 2> numbers{};
};

/// How many tensors of a parameter's size torch's functions hold beside parameter, gradient and
/// state at most, as their source says.
struct UpdateTemporaries {
  int for_all = 0;          ///< the foreach implementation, which makes them of all parameters
  int for_each = 0;         ///< from tensor to tensor
  bool has_foreach = true;  ///< false: it goes from tensor to tensor also on a GPU
};

/// What an optimizer has of its own beside its update. Each is in a file of its name.
class OptimizerRule {
 public:
  virtual ~OptimizerRule() = default;

  virtual std::string_view name() const = 0;  ///< of its class
  virtual OptimizerSettings defaults() const = 0;
  /// Those that are modelled.
  virtual OptimizerArguments arguments() const = 0;
  virtual std::span<const std::string_view> other_arguments() const = 0;
  virtual MomentumArgument momentum() const = 0;

  virtual std::vector<OptimizerState> state(const OptimizerSettings& settings,
                                            const Shape& parameter) const = 0;
  /// Tensors of one element that it keeps as well, as its count of steps.
  virtual int counters() const = 0;
  /// Entries of a parameter group, the list of its parameters among them.
  virtual int group_entries() const = 0;
  virtual UpdateTemporaries temporaries(const OptimizerSettings& settings) const = 0;
  /// Whether it updates the elements of a tensor independently of each other. Others cannot work on
  /// parts of tensors, nor on several that have become one.
  virtual bool is_elementwise() const = 0;
  /// How often a parameter's size passes through memory beside the update itself, for norms.
  virtual int further_passes() const = 0;
  /// How often the gradient is an operand that must be whole; 0: nobody has looked.
  virtual int gradient_operands(const OptimizerSettings& settings) const = 0;
  /// What torch 2.11 raises where it updates a DTensor of so many dimensions; empty: nothing.
  virtual std::string_view error_of_distributed(size_t dimensions) const = 0;

  virtual Kernel kernel() const = 0;
  virtual std::vector<double> scalars(const OptimizerSettings& settings, const UpdateMoment& moment,
                                      const Shape& parameter) const = 0;
  /// Advances the numbers that are kept to those of the next step; returns those of this one.
  virtual std::array<double, 2> advance(const OptimizerSettings& settings, int64_t step,
                                        std::array<double, 2>& kept) const = 0;
};

const OptimizerRule& rule_of(OptimizerKind kind);
/// All of them.
std::vector<const OptimizerRule*> optimizer_rules();

}  // namespace lockstep
