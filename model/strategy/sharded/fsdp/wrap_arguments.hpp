#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/network/network.hpp"
#include "model/strategy/arguments.hpp"
#include "model/strategy/layout/wrap_policy.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// The arguments with objects written in one way: `{class_path: .., init_args: ..}` as
/// `{Name: {argument: value}}`, and what a policy is given by its place with the argument's name.
StrategyArguments with_named_objects(const StrategyArguments& arguments);

/// The arguments with what an object of these classes holds in place of the object:
/// `{mixed_precision: {MixedPrecision: {param_dtype: bf16}}}` says what a map says.
struct NestedClass {
  std::string_view argument;
  std::string_view class_name;
};
StrategyArguments without_class_names(const StrategyArguments& arguments,
                                      std::span<const NestedClass> classes);

/// The last parts of names that may have a path: "torch.nn.Linear".
std::vector<std::string> last_parts(std::vector<std::string> names);

/// A policy that wraps modules of these classes; `blocks` alone means whatever repeats.
WrapPolicy wrap_classes(const std::vector<std::string>& classes);

/// The classes that a policy of modules names under `name`: a list, or one of torch's policies with
/// such a list.
std::vector<std::string> policy_classes(const StrategyArguments& arguments,
                                        const std::string& name);

/// The argument `auto_wrap_policy` as FSDPStrategy takes it.
WrapPolicy wrap_policy(const StrategyArguments& arguments);

/// Why the argument `name` has no effect, or a class of it that no module is; else empty.
std::string what_wraps_nothing(const WrapPolicy& policy, const Network& network,
                               const std::string& name);

/// Throws ArgumentProblem where the model has no module of a class that the argument `name` asks
/// for.
void check_classes(const WrapPolicy& policy, const Network& network, const std::string& name);

/// The classes or layers that the argument `name` leaves out of all units. Throws ArgumentProblem
/// for one that the model does not have.
std::vector<std::string> ignored_modules(const StrategyArguments& arguments, const Network& network,
                                         const std::string& name);

/// Throws UnmodelledArgument where layers of different units share a weight, of which the wrapper
/// makes a parameter of its own for each.
void refuse_untied(const WrapPolicy& policy, const Network& network, std::string_view wrapper,
                   const std::string& name);

/// The argument as a device mesh of two dimensions, [replicas, shards]. Throws ArgumentProblem
/// where these are not so many ranks; 0: nobody knows how many there will be.
struct DeviceMesh {
  int32_t replicas = 1;
  int32_t shards = 1;
};
/// Whether the argument is a mesh of one dimension.
bool is_flat_mesh(const StrategyArguments& arguments, const std::string& name);
DeviceMesh mesh_argument(int32_t ranks, const StrategyArguments& arguments,
                         const std::string& name);
/// The mesh of an argument with as many replicas as the ranks need; empty: its shards do not fit.
std::string mesh_of_size(const StrategyArguments& arguments, const std::string& name,
                         int64_t ranks);

/// Throws ArgumentProblem for a name inside of a map that is neither of these, and
/// UnmodelledArgument for those that a strategy class has and that are not modelled.
struct NestedNames {
  std::string_view class_name;
  std::span<const std::string_view> known;
  std::span<const std::string_view> unmodelled{};
};
void check_nested_names(const StrategyArguments& arguments, const NestedNames& names);

}  // namespace lockstep
