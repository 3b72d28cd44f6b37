#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/scenario/scenario.hpp"

namespace lockstep::cli {

/// The origin of a value: the first metric in it, and whether ranks' values were gathered.
struct Origin {
  std::string class_name;
  std::string declaration;   ///< of the same as an object: "{BinaryF1Score: {threshold: 0.2}}"
  std::string update = "m";  ///< that gives it the same
  bool is_ratio = false;     ///< it divides by what depends on samples
  bool is_micro = false;
  bool is_gathered = false;  ///< what ranks averaged was gathered
  bool is_mean = false;
};

/// Finds what logged values come from, through the names that the statements of a program bind.
class LoggedOrigins {
 public:
  /// The scenario has a program, and outlives this.
  /// `knows_loss`: the network's loss is computed, as a mean over samples.
  LoggedOrigins(const Scenario& scenario, bool knows_loss);
  ~LoggedOrigins();
  LoggedOrigins(const LoggedOrigins&) = delete;
  LoggedOrigins& operator=(const LoggedOrigins&) = delete;

  Origin of(const Expression& expression) const;
  /// It depends on the samples, and on nothing that differs from rank to rank or batch to batch.
  bool is_of_samples_alone(const Expression& expression) const;
  /// The function of one argument at its root: "sum", "max", "mean"; empty: none.
  std::string_view root_function(const Expression& expression) const;
  /// It depends on the network's loss.
  bool is_of_network(const Expression& expression) const;
  /// At its root ranks' values are summed, by a function or by all_reduce, and nothing divides.
  bool sums_over_ranks(const Expression& expression) const;
  /// `world_size` occurs in it, and nothing that comes from other ranks.
  bool is_scaled_by_ranks(const Expression& expression) const;
  /// It is what `compute` has bound: that of all ranks already.
  bool is_computed(const Expression& expression) const;
  /// Sums and multiples of means, so that a mean of its values is its value of the mean.
  bool is_linear(const Expression& expression) const;
  /// The MeanMetric of this name is given means, and no number of samples beside them.
  bool is_given_bare_means(const std::string& metric) const;

 private:
  class Names;
  std::unique_ptr<const Names> names_;
};

}  // namespace lockstep::cli
